"""A nudge for screens: what changed, by topic and id, and never how. Many fold into one."""

import json
from collections.abc import Iterable
from typing import Any, Self

TOPICS = ("jobs", "workers", "letters", "queues", "promises")
# With all of these ids the JSON stays below the 8,000 bytes that NOTIFY takes.
MOST_JOBS = 150
MOST_WORKERS = 40
ID_LENGTH = 36


class Nudge:
    """Topics that changed, and the ids of jobs and workers that did; `None`: too many to name, or not known which."""

    __slots__ = ("jobs", "topics", "workers")

    def __init__(
        self, topics: Iterable[str] = (), jobs: Iterable[str] | None = (), workers: Iterable[str] | None = ()
    ) -> None:
        self.topics = set(topics)
        self.jobs: set[str] | None = None if jobs is None else set(jobs)
        self.workers: set[str] | None = None if workers is None else set(workers)
        self._bound()

    @classmethod
    def everything(cls) -> Self:
        """Anything may have changed: nobody listened for a while."""
        return cls(TOPICS, None, None)

    @classmethod
    def read(cls, text: str | bytes) -> Self | None:
        """From JSON; None when it is not one of ours: anybody may NOTIFY anything."""
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return cls.of(said)

    @classmethod
    def of(cls, said: Any) -> Self | None:
        """From what `said` gives; None when it is not of that shape."""
        if not isinstance(said, dict) or not isinstance(said.get("topics"), list):
            return None
        topics = [topic for topic in said["topics"] if topic in TOPICS]
        return cls(topics, _ids(said.get("jobs")), _ids(said.get("workers"))) if topics else None

    def add(self, other: "Nudge") -> None:
        """Fold another one in."""
        self.topics |= other.topics
        self.jobs = None if self.jobs is None or other.jobs is None else self.jobs | other.jobs
        self.workers = None if self.workers is None or other.workers is None else self.workers | other.workers
        self._bound()

    def _bound(self) -> None:
        if self.jobs is not None and len(self.jobs) > MOST_JOBS:
            self.jobs = None
        if self.workers is not None and len(self.workers) > MOST_WORKERS:
            self.workers = None

    def __bool__(self) -> bool:
        return bool(self.topics)

    def said(self) -> dict[str, list[str] | None]:
        """As JSON is made of it; sorted, so that equal nudges are equal texts."""
        return {
            "topics": sorted(self.topics),
            "jobs": None if self.jobs is None else sorted(self.jobs),
            "workers": None if self.workers is None else sorted(self.workers),
        }

    def text(self) -> str:
        """As JSON."""
        return json.dumps(self.said(), separators=(",", ":"))


def _ids(value: Any) -> list[str] | None:
    if not isinstance(value, list) or not all(isinstance(id_, str) and len(id_) <= ID_LENGTH for id_ in value):
        return None
    return value
