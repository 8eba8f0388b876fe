"""A small payload for each of the four samples."""

import pytest

PAYLOADS = {
    "report.generate": {"rows": 20},
    "file.process": {"lines": 20},
    "integration.sync": {"records": 20, "page_size": 10},
    "notification.send": {"recipient": "ana@example.com"},
}
each_sample = pytest.mark.parametrize("name", sorted(PAYLOADS))
