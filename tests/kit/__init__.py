"""The test kit: handlers that log their starts to a file outside the product, and real worker processes."""
