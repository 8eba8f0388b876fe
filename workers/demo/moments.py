"""Instants and ids of the demonstration: counted back from the database's now, drawn from one seed."""

from datetime import datetime, timedelta
from random import Random
from uuid import UUID


class Moments:
    """`now` is the database's; ids are version 7 of the instant they are asked for, so that they sort by time."""

    def __init__(self, now: datetime, rng: Random) -> None:
        self.now = now
        self._rng = rng

    def ago(self, seconds: float) -> datetime:
        """The instant so many seconds before now (after it, when negative)."""
        return self.now - timedelta(seconds=seconds)

    def id_at(self, instant: datetime) -> UUID:
        """A UUIDv7 of this instant."""
        value = int(instant.timestamp() * 1000) << 80 | self._rng.getrandbits(80)
        return UUID(int=value & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62)

    def token(self) -> UUID:
        """A dispatch token."""
        return UUID(int=self._rng.getrandbits(128), version=4)
