"""STOPs that are still to be sent, one after another: of two that are pending at once the kernel keeps one."""

APART = 0.2  # seconds between two


class Stops:
    """How many are left, and when the next one is due."""

    def __init__(self) -> None:
        self._left, self._due = 0, 0.0

    def ask(self, times: int) -> None:
        """So many more."""
        self._left += times

    def take(self, now: float) -> bool:
        """Whether one is to be sent now; the next one is due a moment later."""
        if not self._left or now < self._due:
            return False
        self._left, self._due = self._left - 1, now + APART
        return True

    def seconds_left(self, now: float) -> float:
        """Until the next one is due; endless when none is left."""
        return max(0.0, self._due - now) if self._left else float("inf")
