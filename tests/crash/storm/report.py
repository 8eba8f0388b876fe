"""What a storm was and what came of it: for people (Markdown) and for programs (one line of JSON)."""

import json
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from jobs.invariants import Finding, keep_storm
from tests.crash.storm.referee import Verdict, broken


@dataclass
class Report:
    """`orders` by kind and by what the clients know; `ends`: jobs by type and state; `executions` by outcome;
    times in seconds, `at` the beginning."""

    profile: str
    seed: int
    seconds: float
    a_second: float
    at: datetime
    calm: float
    orders: Mapping[str, Counter[str]]
    ends: Mapping[str, Counter[str]]
    executions: Mapping[str, int]
    struck: Mapping[str, int]
    missed: Mapping[str, int]
    deeds: Mapping[str, int]
    verdicts: list[Verdict]
    machine: str

    @property
    def ok(self) -> bool:
        """Whether no rule was broken."""
        return not broken(self.verdicts)

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return sum(sum(states.values()) for states in self.ends.values())

    def keep(self, using: str) -> None:
        """Store it in an installation's database, for the screen that shows the promises."""
        findings = [
            Finding(one.name, one.promise, one.count, one.examples, one.rule, "") for one in broken(self.verdicts)
        ]
        keep_storm(
            place=self.profile, seed=self.seed, seconds=self.seconds, jobs=self.jobs, faults=self.struck,
            findings=findings, using=using,
        )  # fmt: skip

    def line(self) -> str:
        """Everything that is counted, as JSON in one line."""
        return json.dumps({
            "storm": self.profile,
            "at": self.at.isoformat(timespec="seconds"),
            "seed": self.seed,
            "seconds": round(self.seconds),
            "jobs_per_second": self.a_second,
            "calm_seconds": round(self.calm, 1),
            "jobs": self.jobs,
            "states": dict(sum(self.ends.values(), Counter())),
            "executions": dict(self.executions),
            "faults": dict(self.struck),
            "missed": sum(self.missed.values()),
            "deeds": dict(self.deeds),
            "rules": len(self.verdicts),
            "broken": {verdict.rule: verdict.count for verdict in broken(self.verdicts)},
        })  # fmt: skip

    def markdown(self) -> str:
        """The report as a page."""
        faults, deeds = sum(self.struck.values()), sum(self.deeds.values())
        parts = [
            f"# {self.at:%Y-%m-%d}: a storm in the {self.profile} profile",
            f"`python -m tests.crash.storm --profile {self.profile} --minutes {self.seconds / 60:g} "
            f"--seed {self.seed} --jobs-per-second {self.a_second:g}`, begun at {self.at:%H:%M} UTC. {self.machine}",
            f"{self.jobs:,} jobs, {sum(self.executions.values()):,} executions, {faults:,} faults, {deeds:,} deeds of "
            f"people; all was at rest {self.calm:.0f} s after the last fault. "
            + ("Every rule held." if self.ok else f"**{len(broken(self.verdicts))} rules were broken.**"),
            "## Rules",
            _table(
                ("promise", "rule", ""),
                [
                    (verdict.promise, verdict.rule, "ok" if verdict.ok else f"**{verdict.count}**")
                    for verdict in self.verdicts
                ],
            ),
            *_examples(broken(self.verdicts)),
            "## Faults",
            _table(
                ("fault", "struck", "found nobody"),
                [
                    (name, str(self.struck.get(name, 0)), str(self.missed.get(name, 0)))
                    for name in sorted({*self.struck, *self.missed})
                ],
            ),
            "## Jobs by kind, and what their clients know",
            _crossed("kind", self.orders),
            "## Jobs by type, and how they ended",
            _crossed("type", self.ends),
            "## Executions",
            _table(("outcome", ""), [(name, f"{count:,}") for name, count in sorted(self.executions.items())]),
            "## Deeds of people",
            _table(("deed", ""), [(name, f"{count:,}") for name, count in sorted(self.deeds.items())]),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _crossed(name: str, counts: Mapping[str, Counter[str]]) -> str:
    columns = sorted({column for row in counts.values() for column in row})
    rows = [(head, *(f"{counts[head][column]:,}" for column in columns)) for head in sorted(counts)]
    return _table((name, *columns), rows)


def _examples(found: list[Verdict]) -> list[str]:
    return [
        f"**{verdict.rule}** ({verdict.count}):\n\n" + "\n".join(f"* {example}" for example in verdict.examples)
        for verdict in found
    ]


def machine(*servers: str) -> str:
    """The machine in a sentence."""
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {', '.join(servers)}."
