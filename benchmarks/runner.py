"""Runs figures: each side in turn, in the same order, again and again: what the machine does besides hits all."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks.figure import Figure, Sample
from benchmarks.sides.base import Side
from benchmarks.stats import Ratio, Spread
from benchmarks.targets import TARGETS, Comparison

LEAST_WARM = 20  # jobs
Emit = Callable[[dict[str, Any]], None]


@dataclass
class Measured:
    """A figure with the samples of its sides; a side that failed has said why, and has fewer."""

    figure: Figure
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def values(self, side: str, measure: str = "value") -> list[float]:
        """One number of each sample of a side."""
        return [float(sample[measure]) for sample in self.samples.get(side, [])]


class Hall:
    """The sides that were opened: each once, at its first turn. `warmth`: the part of a side's warm-up that is done."""

    def __init__(self, makers: Mapping[str, Callable[[], Side]], warmth: float = 1.0) -> None:
        self._makers, self._warmth, self._open = makers, warmth, dict[str, Side]()
        self._stack = ExitStack()

    def side(self, name: str) -> Side:
        """Open, with its driver."""
        if name not in self._open:
            side = self._makers[name]()
            side.warm = max(LEAST_WARM, round(side.warm * min(1.0, self._warmth)))
            self._stack.callback(side.close)
            side.open()
            self._open[name] = side
        return self._open[name]

    def close(self) -> None:
        """Close all, the last one first."""
        self._stack.close()


def measure(figure: Figure, names: Sequence[str], hall: Hall, *, repeat: int, scale: float, emit: Emit) -> Measured:
    """A, B, A, B …; a side that fails is left out from there on, and the others go on."""
    measured = Measured(figure)
    for turn in range(repeat):
        for name in names:
            if name in measured.failures:
                continue
            try:
                sample = figure.run(hall.side(name), scale)
            except Exception as error:  # noqa: BLE001  (a peer that breaks must not cost the others' figures)
                measured.failures[name] = f"{type(error).__name__}: {error}"
                emit({"kind": "failure", "figure": figure.name, "side": name, "error": traceback.format_exc()})
                continue
            measured.samples.setdefault(name, []).append(sample)
            emit({"kind": "turn", "figure": figure.name, "side": name, "turn": turn, **sample})
    return measured


def summary(measured: Measured, words: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """A line for each side: median and spread of the value, medians of the rest. `words`: setup and what it keeps."""
    lines = []
    for name, samples in measured.samples.items():
        spread = Spread.of(measured.values(name))
        parts = sorted({part for sample in samples for part in sample.get("cpu_us", {})})
        cpu = {part: Spread.of([sample["cpu_us"][part] for sample in samples]).median for part in parts}
        setup, keeps = words.get(name, ("", ""))
        line: dict[str, Any] = {
            "kind": "figure",
            "figure": measured.figure.name,
            "side": name,
            "unit": measured.figure.unit,
            "median": spread.median,
            "least": spread.least,
            "most": spread.most,
            "turns": len(samples),
            **{extra: Spread.of(measured.values(name, extra)).median for extra in measured.figure.extra},
        }
        if cpu:
            line["cpu_us"] = cpu
        loads = [sample["load"] for sample in samples if "load" in sample]
        lines.append(line | {"load": max(loads, default=0.0), "setup": setup, "keeps": keeps})
    return lines


def compared(measured: Measured) -> list[Comparison]:
    """What the figure says of each target of which both sides were measured."""
    found = []
    for target in TARGETS:
        ones = measured.values(target.one, target.measure) if target.figure == measured.figure.name else []
        if not ones:
            continue
        if target.other is None:
            found.append(Comparison(target, Spread.of(ones).median))
        elif others := measured.values(target.other, target.measure):
            ratio = Ratio.of(ones, others)
            found.append(Comparison(target, ratio.of_medians, ratio, by_cpu(measured, target.one, target.other)))
    return found


def by_cpu(measured: Measured, one: str, other: str) -> float | None:
    """See Comparison. None for figures of time, in which the processor has next to nothing to do."""
    if measured.figure.less:
        return None
    spent = []
    for side in (one, other):
        totals = [sum(sample["cpu_us"].values()) for sample in measured.samples[side] if "cpu_us" in sample]
        spent.append(Spread.of(totals).median if totals else 0.0)
    return spent[1] / spent[0] if all(spent) else None


def comparison_line(comparison: Comparison) -> dict[str, Any]:
    """A comparison as a JSON line."""
    target, ratio = comparison.target, comparison.ratio
    line: dict[str, Any] = {
        "kind": "target",
        "figure": target.figure,
        "measure": target.measure,
        "one": target.one,
        "other": target.other,
        "value": comparison.value,
        "must": target.must,
        "aim": target.aim,
        "verdict": comparison.verdict,
    }
    if comparison.by_cpu is not None:
        line["by_cpu"] = comparison.by_cpu
    return line | ({"least": ratio.least, "most": ratio.most, "tie": ratio.tie} if ratio else {})
