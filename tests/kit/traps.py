"""Which statement is to be lost between PostgreSQL and its client, and how: `proxy` sets these."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tests.kit.processes import eventually

Side = Literal["answer", "request"]
Then = Literal["cut", "blackhole", "hold"]
COMMIT, BEGIN = "COMMIT", "BEGIN"
WRITES = ("INSERT", "UPDATE", "DELETE")


@dataclass(eq=False)
class Trap:
    """Statements to be lost: `left` more of them, once `passes` went through. `caught` counts those that are."""

    words: str
    after: str
    side: Side
    then: Then
    left: int
    passes: int
    with_rows: bool
    caught: int = 0
    _gate: threading.Event = field(default_factory=threading.Event)

    def fits(self, text: str, transaction: list[str], rows: int) -> bool:
        return (
            self.left > 0
            and (rows > 0 or not self.with_rows)
            and text.lstrip().upper().startswith(self.words.upper())
            and (not self.after or any(self.after in earlier for earlier in transaction))
        )

    def awaits(self, side: Side, alone: str) -> bool:
        """Whether a statement that writes, and is a transaction by itself, may be one that it is for. Of a request
        nobody knows how many rows it would have found."""
        return self.side == side and any(word in alone for word in WRITES) and self.fits(COMMIT, [alone], 1)

    def catch(self) -> None:
        self.caught += 1

    def let_go(self) -> None:
        """The answers that were held up go on their way."""
        self._gate.set()

    def held(self) -> None:
        self._gate.wait()

    def wait(self, times: int = 1, seconds: float = 60.0) -> None:
        """Returns when it has caught `times` statements."""
        eventually(lambda: self.caught >= times, f"{times} times {self.words!r} after {self.after!r} lost", seconds)


class Traps:
    """Those of one proxy. The first that a statement fits into catches it, once its `passes` are over."""

    def __init__(self) -> None:
        self._traps: list[Trap] = []
        self._lock = threading.Lock()

    def add(self, trap: Trap) -> Trap:
        """Set it."""
        with self._lock:
            self._traps.append(trap)
        return trap

    def let_go(self) -> None:
        """The answers that are held up go on their way."""
        for trap in self._traps:
            trap.let_go()

    def stepped_into(self, text: str, transaction: list[str], rows: int) -> Trap | None:
        """The trap that a statement steps into."""
        return self._trapped(lambda trap: trap.fits(text, transaction, rows))

    def unsent(self, alone: str) -> Trap | None:
        """The trap for requests into which a statement steps that is a transaction by itself; nobody knows yet what it
        will find."""
        return self._trapped(lambda trap: trap.awaits("request", alone))

    def done(self, alone: str, rows: int) -> Trap | None:
        """The trap for answers into which it steps, now that it has found or changed so many rows."""
        return self._trapped(lambda trap: trap.awaits("answer", alone) and trap.fits(COMMIT, [alone], rows))

    def awaited(self, alone: str) -> bool:
        """Whether its answer may be one to be lost."""
        with self._lock:
            return any(trap.awaits("answer", alone) for trap in self._traps)

    def _trapped(self, fits: Callable[[Trap], bool]) -> Trap | None:
        with self._lock:
            for trap in self._traps:
                if fits(trap):
                    if trap.passes:
                        trap.passes -= 1
                        continue
                    trap.left -= 1
                    return trap
        return None
