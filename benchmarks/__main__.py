"""The benchmarks: Turno and its peers in turn, on servers of this run's own. See README.md in this folder.

    python -m benchmarks NAME [NAME …] | all  [--profile embedded|cluster|both] [--sides turno*,celery-prefork]
                                              [--repeat 2] [--scale full|small|smoke|N] [--json FILE] [--table]

Each turn, each figure and each target is a JSON line on the output (or in FILE); the tables come at the end, with
`--table` alone. Exits with 1 when a side failed, never for what was missed.
"""

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import report, runner
from benchmarks.plan import FIGURES, LONG, chosen, makers, words
from benchmarks.services import Services
from benchmarks.usage import load_average

WARMTH = 3.0  # a third of the scale is as warm as the whole
SCALES = {"full": 1.0, "small": 0.3, "smoke": 0.01}


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; the exit code."""
    asked = _arguments(arguments)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))  # what was started is ended
    names = [name for name in FIGURES if name not in LONG] if "all" in asked.names else asked.names
    with ExitStack() as stack:
        emit = _emitter(asked, stack)
        services = stack.enter_context(Services())
        hall = runner.Hall(makers(services), WARMTH * asked.scale)
        stack.callback(hall.close)
        began = time.monotonic()
        emit(_machine(services) | {"repeat": asked.repeat, "scale": asked.scale})
        tables, comparisons, failures = [], [], 0
        for name in names:
            figure = FIGURES[name]
            sides = chosen(figure, only=asked.sides, profile=asked.profile)
            measured = runner.measure(figure, sides, hall, repeat=asked.repeat, scale=asked.scale, emit=emit)
            lines, found = runner.summary(measured, words()), runner.compared(measured)
            for line in [*lines, *map(runner.comparison_line, found)]:
                emit(line)
            failures += len(measured.failures)
            comparisons += found
            if lines:
                tables.append(report.sides(f"{name}: {figure.words}", lines, figure.extra))
        emit({"kind": "end", "seconds": round(time.monotonic() - began, 1), "failures": failures})
    print("\n\n".join([*tables, *([report.reached(comparisons)] if comparisons else [])]))
    return 1 if failures else 0


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "names", nargs="+", metavar="NAME", choices=[*FIGURES, "all"], help=f"all, {', '.join(FIGURES)}"
    )
    parser.add_argument("--profile", choices=["embedded", "cluster", "both"], default="both")
    parser.add_argument("--repeat", type=int, default=2, help="turns of each side")
    parser.add_argument("--scale", type=_scale, default=1.0, help="full, small, smoke, or a number")
    parser.add_argument(
        "--sides", type=_names, default=frozenset(), help='only these; "turno*" stands for all Turno\'s'
    )
    parser.add_argument("--json", type=Path, help="the lines go there, and not to the output")
    parser.add_argument("--table", action="store_true", help="no lines on the output, the tables alone")
    return parser.parse_args(arguments)


def _scale(text: str) -> float:
    return SCALES.get(text) or float(text)


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _emitter(asked: argparse.Namespace, stack: ExitStack) -> Callable[[dict[str, Any]], None]:
    """A line to the file, or to the output; failures are said on the error stream in any case."""
    file = stack.enter_context(asked.json.open("w", encoding="utf-8")) if asked.json else None

    def emit(line: dict[str, Any]) -> None:
        text = json.dumps(_rounded(line), ensure_ascii=False)
        if line["kind"] == "failure":
            print(f"{line['figure']}: {line['side']} failed\n{line['error']}", file=sys.stderr)
        if file is not None:
            print(text, file=file, flush=True)
        elif not asked.table:
            print(text, flush=True)

    return emit


def _rounded(value: Any) -> Any:
    """Four digits that matter."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def _machine(services: Services) -> dict[str, Any]:
    """What one must know of the machine to read the numbers."""
    return {
        "kind": "machine",
        "folder": str(services.folder),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "postgresql": services.postgres.version,
        "fdatasync_us": services.fdatasync_us(),
        "load": load_average(),
    }


if __name__ == "__main__":
    sys.exit(main())
