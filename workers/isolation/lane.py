"""The way of jobs to a child: a socket of packets, so that several may lie in it before the child needs them.

The worker holds both ends. To receive a packet is one step in the kernel: either the child has it or the worker, never
both, also when the child dies at that moment. So the worker takes back what the child has not taken by receiving it
itself, and knows of each job whether it can have been begun. A job larger than a packet goes in several, alone.
"""

import asyncio
import os
import socket
from collections import deque

from workers.isolation import frames
from workers.isolation.wire import ConnectionGone

PACKET = 16_384  # bytes at most: some of these fit into what the system lets wait in a socket
AGAIN = 0.05  # seconds until another try where the system has no memory for a packet


class Lane:
    """The worker's ends: `entry`, and a copy of the child's. Belongs to the pool's loop.

    The child's end is one open file with the child's: nothing may be set on it.
    """

    def __init__(self, entry: int, end: int, loop: asyncio.AbstractEventLoop) -> None:
        self._entry = socket.socket(fileno=entry)
        # Said of what kind it is, Python sets nothing on it, whatever time limit handlers have given all new sockets.
        self._end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK, 0, fileno=end)
        self._entry.setblocking(False)
        self._loop = loop
        self._parts: deque[memoryview] = deque()  # of a large job, or of one that found no room: not sent yet
        self._large = False  # the job that was sent last, when there was no other, goes in several packets
        self._number = 0  # of that
        self._again: asyncio.TimerHandle | None = None

    def send(self, frame: bytes) -> None:
        """Send a job to a child that has none: at once, or as room comes."""
        self._large = len(frame) > PACKET
        self._number = frames.size_and_number(frame)[1]
        if not self.send_ahead(frame):
            whole = memoryview(frame)
            self._parts.extend(whole[at : at + PACKET] for at in range(0, len(frame), PACKET))
            self._send_parts()

    def send_ahead(self, frame: bytes) -> bool:
        """Send a job that goes in one packet, if there is room; whether it was sent. Nothing is sent behind one that is
        larger, or had no room, until another was sent to the child when it had none."""
        if self._large or self._parts or len(frame) > PACKET:
            return False
        try:
            self._entry.send(frame)
        except OSError:  # there is no room
            return False
        return True

    def take_back(self, *, dead: bool = False) -> set[int]:
        """The numbers of jobs that the child has not taken, and will not any more. (It may take one between two of
        them.) A large one is told of when the child is `dead` and had not taken all of it; that of a living one stays.
        """
        if self._large and not dead:
            return set()
        found = list(iter(self._receive, b""))
        some = bool(self._parts) or (self._large and found)
        self._stop_sending()
        if self._large:
            return {self._number} if some else set()
        return {frames.size_and_number(packet)[1] for packet in found} | ({self._number} if some else set())

    def end(self) -> None:
        """Nothing more will come: the child sees that when it has taken what is there."""
        try:
            self._entry.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self) -> None:
        """Give up both ends."""
        self._stop_sending()
        self._entry.close()
        self._end.close()

    def _receive(self) -> bytes:
        try:
            return self._end.recv(PACKET, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""

    def _send_parts(self) -> None:
        self._again = None
        try:
            while self._parts:
                self._entry.send(self._parts[0])
                self._parts.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._entry, self._send_parts)
            return
        except OSError:
            self._again = self._loop.call_later(AGAIN, self._send_parts)
        self._loop.remove_writer(self._entry)

    def _stop_sending(self) -> None:
        self._parts.clear()
        if self._again is not None:
            self._again.cancel()
            self._again = None
        self._loop.remove_writer(self._entry)


class Inbox:
    """The child's end. A handler may close every descriptor: before each job the child looks whether this is still its
    own socket, for what is read from it is believed."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._end.setblocking(True)  # whatever handler modules have said of all new sockets
        self._file = os.fstat(end.fileno()).st_ino

    def receive(self) -> frames.Job | None:
        """Wait for the next job; None when there will be none. Raises ConnectionGone."""
        try:
            if os.fstat(self._end.fileno()).st_ino != self._file:
                raise ConnectionGone("a handler closed it")
            found = self._end.recv(PACKET)
            if not found:
                return None
            size, _ = frames.size_and_number(found)
            if size > len(found):
                found = self._rest(found, size)
            return frames.unpack_job(found) if found else None
        except OSError as error:
            raise ConnectionGone(str(error)) from None

    def _rest(self, found: bytes, size: int) -> bytes:
        whole = bytearray(found)
        while len(whole) < size:
            part = self._end.recv(PACKET)
            if not part:
                return b""
            whole += part
        return bytes(whole)
