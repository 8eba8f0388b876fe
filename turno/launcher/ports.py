"""TCP ports on this machine."""

import errno
import random
import socket

_TAKEN = (errno.EADDRINUSE,)
# Below the range from which systems give ports to outgoing connections, so that a remembered port stays free.
PRIVATE_RANGE = range(20000, 30000)


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen there now. Raises OSError when the address is not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            if error.errno in _TAKEN:
                return False
            raise
    return True


def free_port(host: str = "127.0.0.1") -> int:
    """A port from the private range that is free now."""
    for port in random.sample(PRIVATE_RANGE, 200):
        if is_free(port, host):
            return port
    raise OSError(_TAKEN[0], "no free port")


def next_free(port: int, host: str) -> int | None:
    """The first free port above one that is taken, to suggest it."""
    return next((other for other in range(port + 1, min(port + 100, 65536)) if is_free(other, host)), None)
