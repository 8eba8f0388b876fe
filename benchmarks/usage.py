"""Processor time of trees of processes: what says more than a clock on a machine that others use too."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from workers import tree

TICK = 1.0 / os.sysconf("SC_CLK_TCK")
UTIME, STIME, CUTIME, CSTIME = 11, 12, 13, 14  # of /proc/<pid>/stat, counted from the state


def cpu_seconds(roots: Iterable[int]) -> float:
    """User and system time so far of these processes and of all below them, ended children included.

    An ended child's time is its parent's once that has waited for it; so differences over a span are right, where no
    process between is reaped by somebody outside the tree.
    """
    pids = {pid for root in roots for pid in (root, *tree.descendants(root))}
    ticks = 0
    for pid in pids:
        fields = tree.stat(pid)
        if fields:
            ticks += sum(int(fields[at]) for at in (UTIME, STIME, CUTIME, CSTIME))
    return ticks * TICK


class Meter:
    """Processor seconds by part of the house, from its making on."""

    def __init__(self, parts: Mapping[str, Iterable[int]]) -> None:
        self._parts = {name: list(pids) for name, pids in parts.items()}
        self._before = self._now()

    def _now(self) -> dict[str, float]:
        return {name: cpu_seconds(pids) for name, pids in self._parts.items()}

    def spent(self) -> dict[str, float]:
        """Seconds since then, by part."""
        return {name: now - self._before[name] for name, now in self._now().items()}

    def per_job(self, jobs: int) -> dict[str, float]:
        """Microseconds a job since then, by part."""
        return {name: round(1e6 * seconds / jobs, 1) for name, seconds in self.spent().items()}


def memory_mb(pids: Iterable[int], field: str = "Pss") -> float:
    """Megabytes of these processes: `Pss` shares what is shared, `Private` counts only what is theirs."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        wanted = ("Private_Clean:", "Private_Dirty:") if field == "Private" else (f"{field}:",)
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(wanted))
    return round(total / 1024, 2)


def load_average() -> float:
    """Of the last minute."""
    return round(os.getloadavg()[0], 2)
