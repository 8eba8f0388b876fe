"""Time that passes as a test has it."""


class Clock:
    """Seconds, monotonic: `now` is what whoever asks is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
