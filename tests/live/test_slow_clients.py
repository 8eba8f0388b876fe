"""Many clients that open a socket and never read: they cost little, are sent away, and hold nobody up."""

import os
import socket
import time
from base64 import b64encode
from contextlib import ExitStack
from pathlib import Path

import pytest

from jobs.ids import new_id
from jobs.nudge import MOST_JOBS, Nudge
from tests.api.client import KEY
from tests.api.served import serving
from tests.kit.processes import eventually
from tests.transitions.ear import raw_connection

pytestmark = [pytest.mark.longo, pytest.mark.django_db(transaction=True)]
CLIENTS = 200
SECONDS = 100
MOST_GROWTH = 100 * 1024 * 1024
TALKS = b"\x81\x81\0\0\0\0x"  # a masked text frame: who talks is not asked by a ping whether it lives


def handshake(port):
    """A socket to the jobs' hub with a small buffer."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(30)
    client.connect(("127.0.0.1", port))
    lines = [
        "GET /hubs/jobs HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}",
        f"X-Turno-Key: {KEY}",
    ]
    client.sendall("\r\n".join([*lines, "", ""]).encode())
    assert client.recv(12) == b"HTTP/1.1 101"
    return client


def resident(pid):
    """Bytes of memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_clients_that_never_read_cost_little_and_hold_nobody_up(tmp_path):
    with serving(tmp_path) as served, raw_connection() as teller, ExitStack() as open_sockets:
        for _ in range(CLIENTS):
            open_sockets.enter_context(handshake(served.port))
        reader = open_sockets.enter_context(handshake(served.port))
        before = resident(served.process.pid)
        until = time.monotonic() + SECONDS
        most = 0
        while time.monotonic() < until:
            jobs = [str(new_id()) for _ in range(MOST_JOBS // 8)]
            teller.execute("SELECT pg_notify('turno_screens', %s)", [Nudge(("jobs",), jobs).text()])
            most = max(most, resident(served.process.pid) - before)
            assert reader.recv(65536)
            reader.sendall(TALKS)
        assert most < MOST_GROWTH
        assert served.ask("GET", "/health/live")[0] == 200

        def gone():
            listening = f":{served.port:04X}"
            rows = Path("/proc/net/tcp").read_text().splitlines()
            return sum(listening in row.split()[1] and row.split()[3] == "01" for row in rows[1:]) < CLIENTS / 2

        eventually(gone, "those that answer no ping are sent away")
        print(f"grew by {most / 1e6:.1f} MB at most")  # noqa: T201
