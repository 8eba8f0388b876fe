"""What people are told of messages that could not be processed: how many there were of late."""

import time
from collections import deque
from collections.abc import Callable

from django.utils.translation import ngettext

LATELY = 3600.0  # seconds; what is older stands in the error queues, and whoever looks at this has seen it


class PutAside:
    """From the growing number of messages that a transport has put aside, those of the last hour."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: deque[tuple[float, int]] = deque([(clock(), 0)])  # when the number was seen to be that

    def problems(self, total: int) -> list[dict[str, str]]:
        """One, or none; `total` since the start. Call it now and then."""
        now = self._clock()
        if total != self._known[-1][1]:
            self._known.append((now, total))
        while len(self._known) > 1 and self._known[1][0] <= now - LATELY:
            self._known.popleft()
        before = self._known[0][1]
        if len(self._known) == 1 or total == before:
            return []
        said = ngettext(
            "%(n)d message that could not be processed was put into an error queue within an hour",
            "%(n)d messages that could not be processed were put into error queues within an hour",
            total - before,
        )
        return [{"part": "messages", "error": said % {"n": total - before}}]
