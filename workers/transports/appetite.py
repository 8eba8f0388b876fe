"""How many unclaimed messages a queue's consumer may hold: as many as slots are free, with hysteresis.

Pure: the instants are the caller's, in seconds on any one clock.
"""

PATIENCE = 0.02  # seconds for which the free slots must ask for another number before it changes
ENDING = 0.2  # seconds at most for which what is held is kept because slots will be free for it in a moment


class Appetite:
    """Follows the free slots of a queue; `prefetch` is what its consumer may hold now, 0 where there is no consumer.

    Free slots are the ones that wait and the ones on offer to a claim. No slot free for a while: hold nothing. A slot
    free again: at once as many as are free. More free than may be held for a while: that many. Fewer: no change, what
    is held is claimed before the slots are full, and goes back after.
    """

    def __init__(self, free: int, now: float) -> None:
        self.prefetch = 0
        self._waiting = free
        self._offered = 0
        self._misfit: str | None = None
        self._since = self._misfit_since = now
        self._look(now)

    @property
    def free(self) -> int:
        """The slots of which it is not known that they are taken."""
        return self._waiting + self._offered

    def offer(self, slots: int, now: float) -> None:
        """So many free slots are on offer to a claim."""
        self._waiting = max(0, self._waiting - slots)
        self._offered = slots
        self._look(now)

    def taken(self, used: int, now: float) -> None:
        """Of the offered slots so many are taken, the others wait again."""
        self._waiting += self._offered - used
        self._offered = 0
        self._look(now)

    def room(self, waiting: int, now: float) -> None:
        """So many free slots wait now; those on offer are not among them."""
        self._waiting = waiting
        self._look(now)

    def consumes(self, prefetch: int, now: float) -> None:
        """The consumer may hold so many from now on."""
        self.prefetch = prefetch
        self._look(now)

    def _look(self, now: float) -> None:
        misfit = None
        if self.free > self.prefetch:
            misfit = "more" if self.prefetch else "some"
        elif self.prefetch and not self.free:
            misfit = "none"
        if misfit != self._misfit:
            self._misfit, self._since, self._misfit_since = misfit, now, now

    def put_off(self, held: int, ending: int, now: float) -> bool:
        """`ending` slots will be free in a moment, and `held` messages wait: the while in which none is free begins
        again. False where some of them would not get one of those, and after ENDING of that."""
        if not ending or held > ending or now >= self._misfit_since + ENDING:
            return False
        self._since = now
        return True

    @property
    def due(self) -> float | None:
        """The instant from which `wanted` is another number than `prefetch`, if nothing changes; None: never."""
        if self._misfit is None:
            return None
        return self._since if self._misfit == "some" else self._since + PATIENCE

    def wanted(self, now: float) -> int:
        """What the consumer should be allowed to hold."""
        return self.prefetch if self.due is None or now < self.due else self.free
