"""Whether the engine's loop still turns: without it no deadline is kept and no stop is heard, while leases are renewed.

Counted in what the watcher itself has waited, not in time: a process that was stopped as a whole has missed nothing.
"""


class Pulse:
    """The engine beats, one other thread watches; nothing is counted before the first beat."""

    def __init__(self) -> None:
        self._beats = 0
        self._seen = 0
        self._waited = 0.0

    def beat(self) -> None:
        """The engine turned."""
        self._beats += 1

    def silent(self, waited: float) -> float:
        """Seconds of waiting, `waited` more by now, in which no beat came."""
        if self._beats != self._seen or not self._beats:
            self._seen, self._waited = self._beats, 0.0
        else:
            self._waited += waited
        return self._waited
