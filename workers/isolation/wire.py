"""A child's end of the connection that carries its jobs: jobs in, what is to be said out.

A handler may close every descriptor, or fork and come back twice. So before each frame the child looks whether the
descriptor is still its own socket, and whether it is still itself.
"""

import os
import select
import socket
import threading
from typing import Any

from workers.isolation import frames
from workers.isolation.gate import Gate


class ConnectionGone(Exception):
    """The connection to the worker is closed, or its descriptor was taken by something else."""


class Wire:
    """Thread-safe. In a forked copy of this process it says nothing."""

    def __init__(self, work: socket.socket, gate: Gate) -> None:
        self._work = work
        self._gate = gate
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._file = os.fstat(work.fileno()).st_ino

    @property
    def is_original(self) -> bool:
        """Whether this process is the one that the worker knows, no copy that a handler forked."""
        return os.getpid() == self._pid

    def receive(self) -> frames.Job | None:
        """Wait for the next job; None when there will be none. Raises ConnectionGone."""
        self._look()
        try:
            header = self._exactly(frames.HEADER.size)
            if not header:
                return None
            return frames.unpack_job(self._exactly(frames.HEADER.unpack(header)[0]))
        except OSError as error:
            raise ConnectionGone(str(error)) from None

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self._work.recv(size - len(found))
            if not part:
                return b""
            found += part
        return found

    def send(self, *message: Any) -> None:
        """Say something to the worker, which may take a moment when it is busy. Raises ConnectionGone."""
        if not self.is_original:
            return
        frame = frames.pack(*message)
        with self._gate, self._lock:
            self._look()
            try:
                self._work.sendall(frame)
            except OSError as error:
                raise ConnectionGone(str(error)) from None

    def offer(self, *message: Any) -> bool:
        """Say something short if that takes no waiting; whether it was said."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._look()
            poll = select.poll()
            poll.register(self._work, select.POLLOUT)
            if not poll.poll(0):  # (ready means that a quarter of the buffer is free, which is more than this)
                return False
            self._work.sendall(frames.pack(*message))
        except OSError as error:
            raise ConnectionGone(str(error)) from None
        finally:
            self._lock.release()
        return True

    def _look(self) -> None:
        try:
            if os.fstat(self._work.fileno()).st_ino == self._file:
                return
        except OSError:
            pass
        raise ConnectionGone("a handler closed it")
