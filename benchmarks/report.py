"""Numbers as people read them: a table of the sides of each figure, and one of what was to be reached."""

from collections.abc import Sequence
from typing import Any

from benchmarks.targets import Comparison


def number(value: float) -> str:
    """With three digits that matter, or whole from a hundred on: 0.012, 1.25, 17,300."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}" if value else "0"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Columns as wide as their longest cell; those of `numbers` stand to the right."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        placed = (
            cell.rjust(width) if at in numbers else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(placed).rstrip()

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])


def sides(words: str, lines: Sequence[dict[str, Any]], extra: Sequence[str]) -> str:
    """The table of one figure; `lines` are those of `runner.summary`."""
    parts = sorted({part for line in lines for part in line.get("cpu_us", {})})
    unit = lines[0]["unit"] if lines else ""
    head = ["side", f"median {unit}".strip(), "least", "most", *extra, *(f"{part} µs/job" for part in parts), "load"]
    rows = [
        [
            line["side"],
            *(number(line[key]) for key in ("median", "least", "most", *extra)),
            *(number(line["cpu_us"][part]) if part in line.get("cpu_us", {}) else "" for part in parts),
            number(line["load"]),
        ]
        for line in lines
    ]
    return f"{words}\n{table(head, rows, range(1, len(head)))}"


def reached(comparisons: Sequence[Comparison]) -> str:
    """What was to be reached, and whether it was; a tie is within the noise of a machine."""
    head = ["target", "measured", "range", "by cpu", "must", "aim", ""]
    rows = []
    for comparison in comparisons:
        target, ratio = comparison.target, comparison.ratio
        sign = " ×" if ratio else ""
        rows.append(
            [
                target.name,
                number(comparison.value) + sign,
                f"{number(ratio.least)} - {number(ratio.most)}" if ratio else "",
                "" if comparison.by_cpu is None else number(comparison.by_cpu) + sign,
                *("" if bound is None else number(bound) + sign for bound in (target.must, target.aim)),
                comparison.verdict + (" (tie)" if ratio and ratio.tie else ""),
            ]
        )
    return table(head, rows, (1, 2, 3, 4, 5))
