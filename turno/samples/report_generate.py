"""`report.generate`: aggregates made-up sales and renders them as text, CSV and HTML."""

import csv
import html
import io
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from django.utils.translation import gettext, gettext_noop
from pydantic import Field

from turno.handlers import JobContext, job_type
from turno.samples.pace import Demonstration, Pace

REGIONS = ("Norte", "Nordeste", "Centro-Oeste", "Sudeste", "Sul")
PRODUCTS = ("Caderno", "Caneta", "Lapiseira", "Mochila", "Régua", "Estojo")
CENT = Decimal("0.01")

Dimension = Literal["region", "product", "month"]
Format = Literal["text", "csv", "html"]


class ReportPayload(Demonstration):
    """What to report on."""

    title: str = Field(
        "Vendas",
        min_length=1,
        max_length=120,
        description=gettext_noop("The report's title."),
        examples=["Vendas de março"],
    )
    rows: int = Field(
        500, ge=1, le=100_000, description=gettext_noop("How many sales to make up and add up."), examples=[500]
    )
    group_by: Dimension = Field(
        "region", description=gettext_noop("What the totals are grouped by."), examples=["region"]
    )
    formats: list[Format] = Field(
        default=["text", "csv", "html"],
        min_length=1,
        max_length=3,
        description=gettext_noop("The files to render."),
        examples=[["html"]],
    )


@dataclass(frozen=True, slots=True)
class Sale:
    """One made-up sale."""

    region: str
    product: str
    month: str
    quantity: int
    price: Decimal

    @property
    def amount(self) -> Decimal:
        """Quantity times price."""
        return self.quantity * self.price


@dataclass(slots=True)
class Line:
    """The totals of one group."""

    name: str
    sales: int = 0
    quantity: int = 0
    amount: Decimal = Decimal(0)

    @property
    def mean(self) -> Decimal:
        """The mean amount of a sale, to the cent."""
        return (self.amount / self.sales).quantize(CENT)


@job_type("report.generate", queue="reports", timeout="10 min")
def generate_report(ctx: JobContext, payload: ReportPayload) -> dict[str, Any]:
    """Computes a sales report and renders it as text, CSV and HTML."""
    pace = Pace(ctx, payload, steps=4)
    pace.step(gettext("Reading the sales"))
    sales = list(made_up_sales(payload.rows, payload.seed))
    pace.step(gettext("Adding up"))
    lines = totals(sales, payload.group_by)
    grand = sum((line.amount for line in lines), Decimal(0))
    ctx.log(gettext("Sales: %(rows)d, groups: %(groups)d") % {"rows": len(sales), "groups": len(lines)})
    pace.step(gettext("Rendering"))
    files = {f"report.{_SUFFIX[kind]}": _RENDER[kind](payload.title, lines, grand) for kind in payload.formats}
    pace.step(gettext("Writing the files"))
    for name, content in files.items():
        (ctx.folder / name).write_text(content, encoding="utf-8", newline="")
    pace.done()
    return {
        "rows": len(sales),
        "total": grand,
        "mean": (grand / len(sales)).quantize(CENT),
        "largest": lines[0].name,
        "groups": {line.name: line.amount for line in lines},
        "files": sorted(files),
    }


def made_up_sales(rows: int, seed: int) -> Iterator[Sale]:
    """`rows` sales that are the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311  (made-up data)
    for _ in range(rows):
        yield Sale(
            region=rng.choice(REGIONS),
            product=rng.choice(PRODUCTS),
            month=f"2026-{rng.randint(1, 12):02}",
            quantity=rng.randint(1, 20),
            price=Decimal(rng.randint(150, 19_990)) / 100,
        )


def totals(sales: list[Sale], group_by: Dimension) -> list[Line]:
    """A line a group: the largest amount first, months in their order."""
    groups: dict[str, Line] = defaultdict(lambda: Line(""))
    for sale in sales:
        line = groups[getattr(sale, group_by)]
        line.sales += 1
        line.quantity += sale.quantity
        line.amount += sale.amount
    for name, line in groups.items():
        line.name = name
    return sorted(groups.values(), key=lambda line: (-line.amount, line.name))


def _text(title: str, lines: list[Line], total: Decimal) -> str:
    width = max(len(gettext("Total")), *(len(line.name) for line in lines))
    rows = [f"{line.name:<{width}}  {line.sales:>7}  {line.amount:>16.2f}" for line in lines]
    rows.append(f"{gettext('Total'):<{width}}  {sum(line.sales for line in lines):>7}  {total:>16.2f}")
    return "\n".join([title, "=" * len(title), "", *rows, ""])


def _csv(title: str, lines: list[Line], total: Decimal) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["group", "sales", "quantity", "amount", "mean"])
    writer.writerows([line.name, line.sales, line.quantity, line.amount, line.mean] for line in lines)
    return out.getvalue()


def _html(title: str, lines: list[Line], total: Decimal) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(line.name)}</th><td>{line.sales}</td><td>{line.amount:.2f}</td></tr>" for line in lines
    )
    name = html.escape(title)
    foot = f"<tr><th>{gettext('Total')}</th><td></td><td>{total:.2f}</td></tr>"
    return (
        f'<!doctype html><meta charset="utf-8"><title>{name}</title><h1>{name}</h1>'
        f"<table><tbody>{rows}</tbody><tfoot>{foot}</tfoot></table>\n"
    )


_SUFFIX: dict[Format, str] = {"text": "txt", "csv": "csv", "html": "html"}
_RENDER = {"text": _text, "csv": _csv, "html": _html}
