"""A host that is cut off as a pulled cable does it: a network namespace whose one link, to a shore, can be taken down.

Both ends are namespaces of their own: nothing of this machine's network is touched, and no packet leaves it. They last
as long as this process, or one that was started there.
"""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

SHORE, ISLAND = "10.0.0.1", "10.0.0.2"  # nobody else has addresses there
NOT_PERMITTED = (
    "this needs network namespaces: Linux, the rights to make them (CAP_SYS_ADMIN and CAP_NET_ADMIN, as root has on a "
    "machine of its own and rarely in a container), and the command ip of iproute2"
)


class Island:
    """`run` runs something there; whatever that starts stays there. The link is up at first."""

    def __init__(self) -> None:
        """Raises OSError where it is not permitted."""
        self._ip = shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin")
        if self._ip is None or not hasattr(os, "unshare"):
            raise OSError("no ip, or no namespaces")
        self._there, self._shore = _namespace(), _namespace()
        far = f"/proc/{os.getpid()}/fd/{self._there}"
        self._command(self._shore, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", far)
        for namespace, end, address in ((self._shore, "near", SHORE), (self._there, "far", ISLAND)):
            self._command(namespace, "addr", "add", f"{address}/24", "dev", end)
            self._command(namespace, "link", "set", end, "up")
            self._command(namespace, "link", "set", "lo", "up")

    def run[T](self, work: Callable[[], T]) -> T:
        """What `work` returns, or raises, there. Processes that it starts and sockets that it opens are there too."""
        return _inside(self._there, work)

    def listener(self) -> socket.socket:
        """A socket on the shore that takes connections from the island: all that can be reached from there."""
        return _inside(self._shore, lambda: socket.create_server((SHORE, 0), backlog=64))

    def unplug(self) -> None:
        """From now on packets vanish, and nobody is told."""
        self._command(self._shore, "link", "set", "near", "down")

    def plug(self) -> None:
        """The cable is in again."""
        self._command(self._shore, "link", "set", "near", "up")

    def _command(self, namespace: int, *words: str) -> None:
        done = _inside(
            namespace, lambda: subprocess.run([str(self._ip), *words], capture_output=True, text=True, check=False)
        )
        if done.returncode:
            raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")

    def close(self) -> None:
        """Forget it; the link ends with the last process there."""
        for namespace in (self._there, self._shore):
            os.close(namespace)


def _in_a_thread[T](work: Callable[[], T]) -> T:
    """A namespace is the thread's that enters it, and of what that thread starts: it ends with the work."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  (for who waits)
            future.set_exception(error)

    thread = threading.Thread(target=run, name="island")
    thread.start()
    thread.join()
    return future.result()


def _namespace() -> int:
    def make() -> int:
        os.unshare(os.CLONE_NEWNET)
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    return _in_a_thread(make)


def _inside[T](namespace: int, work: Callable[[], T]) -> T:
    def enter() -> T:
        os.setns(namespace, os.CLONE_NEWNET)
        return work()

    return _in_a_thread(enter)


@contextmanager
def island() -> Iterator[Island]:
    """One that is gone after the block; where none can be made the test is skipped, with the reason."""
    try:
        made = Island()
    except OSError as error:
        pytest.skip(f"{NOT_PERMITTED} ({error})")
    try:
        yield made
    finally:
        made.close()
