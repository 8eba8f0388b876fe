"""The pause before something that ended is started again."""

FIRST, LONGEST = 0.5, 30.0  # seconds; it doubles
STEADY = 60.0  # seconds of life after which something counts as well


class Pause:
    """Doubles with each end that comes too soon."""

    def __init__(self) -> None:
        self.seconds = FIRST
        self._soon = 0

    def after(self, lived: float) -> float:
        """Something ended that lived so many seconds: how long to wait now."""
        self._soon = 0 if lived > STEADY else self._soon
        self.seconds = min(LONGEST, FIRST * 2.0 ** min(self._soon, 10))
        self._soon += 1
        return self.seconds
