"""report.generate computes and renders a real report."""

import csv
import io
from collections import Counter
from decimal import Decimal

import pytest

from turno.samples.report_generate import generate_report, made_up_sales
from turno.testing import run_job


def test_the_totals_are_those_of_the_sales():
    run = run_job(generate_report, {"rows": 300, "seed": 9, "group_by": "product"})
    sales = list(made_up_sales(300, 9))
    assert Decimal(run.result["total"]) == sum(sale.amount for sale in sales)
    assert run.result["rows"] == 300
    assert set(run.result["groups"]) == {sale.product for sale in sales}
    amounts = [Decimal(amount) for amount in run.result["groups"].values()]
    assert amounts == sorted(amounts, reverse=True)
    assert sum(amounts) == Decimal(run.result["total"])


def test_three_files_are_rendered_and_agree():
    run = run_job(generate_report, {"title": "Vendas <b>", "rows": 120, "group_by": "month"})
    assert sorted(run.files) == run.result["files"] == ["report.csv", "report.html", "report.txt"]
    rows = list(csv.DictReader(io.StringIO(run.files["report.csv"].decode(), newline="")))
    assert {row["group"]: row["amount"] for row in rows} == run.result["groups"]
    assert sum(int(row["sales"]) for row in rows) == 120
    assert run.files["report.txt"].decode().startswith("Vendas <b>\n==========\n")
    html = run.files["report.html"].decode()
    assert "<h1>Vendas &lt;b&gt;</h1>" in html
    assert html.count("<tr>") == len(rows) + 1


def test_the_same_seed_gives_the_same_report_and_another_one_another():
    first, second, other = (run_job(generate_report, {"rows": 50, "seed": seed}) for seed in (1, 1, 2))
    assert (first.result, first.files) == (second.result, second.files)
    assert first.result["total"] != other.result["total"]


def test_only_the_formats_that_were_asked_for_are_written():
    assert sorted(run_job(generate_report, {"formats": ["html"]}).files) == ["report.html"]


@pytest.mark.parametrize("rows", [1, 2])
def test_a_tiny_report_is_a_report(rows):
    run = run_job(generate_report, {"rows": rows})
    assert Counter(len(group) > 0 for group in run.result["groups"])[True] == len(run.result["groups"]) <= rows
