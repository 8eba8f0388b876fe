"""A private Service Bus for tests: `tests.kit.servicebus_peer` in a process of its own on a free loopback port."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.tree import PROJECT
from tests.kit.processes import eventually
from tests.kit.servicebus_queues import DEAD
from turno.launcher import ports

LOCK_SECONDS = 30.0
MAX_DELIVERIES = 10  # the service's own default
MISSING = "python-qpid-proton is not installed: ./testar.sh installs requirements/peer.txt, built with a C compiler"


class ServiceBus:
    """`connection_string` names it. Queues exist once they are created; see `Control` for what can be done to it."""

    def __init__(self, folder: Path, lock_seconds: float = LOCK_SECONDS, max_deliveries: int = MAX_DELIVERIES) -> None:
        self.port = ports.free_port()
        self._arguments = [str(self.port), str(lock_seconds), str(max_deliveries)]
        self._log = folder / "servicebus.log"
        self._process: subprocess.Popen[str] | None = None
        self._asking = threading.Lock()

    @property
    def connection_string(self) -> str:
        """As an administrator would copy it, but for the port and the last part, which switch encryption off."""
        login = "SharedAccessKeyName=Root;SharedAccessKey=c2VjcmV0"
        return f"Endpoint=sb://127.0.0.1:{self.port};{login};UseDevelopmentEmulator=true;"

    def start(self) -> None:
        """Returns when it listens; empty, as after a loss of everything."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.kit.servicebus_peer", *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=PROJECT,
                text=True,
            )
        assert self._read() == "ready", self._log.read_text()[-2000:]

    def do(self, command: str, **arguments: Any) -> Any:
        """Give it a command and wait for the answer."""
        assert self._process is not None
        assert self._process.stdin is not None
        with self._asking:
            self._process.stdin.write(json.dumps({"do": command, **arguments}) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._read() or "{}")
        assert "answer" in answer, (answer, self._log.read_text()[-2000:])
        return answer["answer"]

    def create(self, *queues: str) -> None:
        """Make these queues."""
        self.do("create", queues=queues)

    def inject(self, queue: str, body: bytes, ttl: float | None = None) -> None:
        """A message with this body, as from a stranger."""
        self.do("inject", queue=queue, body=base64.b64encode(body).decode(), ttl=ttl)

    def count(self, queue: str, what: str = "ready") -> int:
        """Messages of a queue: ready, locked or completed."""
        counts: dict[str, dict[str, int]] = self.do("counts")
        return counts[queue.lower()][what]

    def messages(self, queue: str) -> list[dict[str, Any]]:
        """What a queue holds, the oldest first."""
        found: list[dict[str, Any]] = self.do("messages", queue=queue)
        return [message | {"body": base64.b64decode(message["body"])} for message in found]

    def dead(self, queue: str) -> list[dict[str, Any]]:
        """What stands in the queue's dead-letter queue."""
        return self.messages(queue + DEAD)

    def wait(self, queue: str, seconds: float = 60.0, **counts: int) -> None:
        """Returns when the queue has so many messages: `ready=0, locked=1`."""

        def reached() -> bool:
            found: dict[str, int] = self.do("counts")[queue.lower()]
            return counts.items() <= found.items()

        eventually(reached, f"{queue} has {counts}", seconds)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It says nothing, and its connections stay."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Kill it, and what it holds is lost."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(60)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None

    def _read(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def running_service_bus(folder: Path, queues: Iterable[str] = (), **options: Any) -> Iterator[ServiceBus]:
    """One that is ended with the block, with these queues."""
    try:
        import proton  # noqa: F401
    except ImportError:
        pytest.fail(MISSING, pytrace=False)
    bus = ServiceBus(folder, **options)
    bus.start()
    try:
        bus.create(*queues)
        yield bus
    finally:
        bus.stop()
