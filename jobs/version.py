"""The product's version, for the API, the screens and the workers' rows."""

VERSION = "0.1.0"
