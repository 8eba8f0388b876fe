"""Names that belong to nobody (RFC 2606, RFC 6761): the samples accept no others, so that they can reach no one."""

DOMAINS = ("example.com", "example.net", "example.org")
TOP_LEVEL = (".example", ".invalid", ".test")


def is_reserved(host: str) -> bool:
    """Whether a host name is reserved for examples and tests."""
    name = host.lower().rstrip(".")
    return name in DOMAINS or name.endswith(TOP_LEVEL) or name.endswith(tuple(f".{domain}" for domain in DOMAINS))
