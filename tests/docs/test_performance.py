"""What the manual says of speed was measured: each number of its tables stands in the report that it names."""

import json
import re

import pytest

from benchmarks.plan import FIGURES
from tests.docs.blocks import PROJECT, links

REPORTS = PROJECT / "docs" / "reports"
PAGES = {"en": "performance.md", "pt-BR": "desempenho.md"}


def page(language):
    return PROJECT / "docs" / "manual" / language / PAGES[language]


def report(language):
    """The lines of the run that the page names."""
    [link] = [link for link in links(page(language)) if link.endswith("-benchmarks.md")]
    lines = (REPORTS / link.rpartition("/")[2]).with_suffix(".jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def measured(lines):
    """All numbers of a report, with three digits, as the pages have them."""
    found = set()
    for line in lines:
        values = [line.get(key) for key in ("median", "value", "p50", "p99", "pss_mb", "percent", "fresh", "thread")]
        values += [sum(used for part, used in line.get("cpu_us", {}).items() if part != "driver")]
        values += [100 * line["median"]] if line.get("figure") == "keys" and "median" in line else []
        found |= {float(f"{value:.3g}") for value in values if isinstance(value, (int, float)) and value > 0}
    return found


def said(text, language):
    """The numbers in the cells of tables, as numbers."""
    text = re.sub(r"^\|.*\|\n\| ---.*$", "", text, flags=re.MULTILINE)  # heads
    separators = str.maketrans(",.", ",." if language == "en" else ".,")
    cells = [cell for row in re.findall(r"^\|(.*)\|$", text, re.MULTILINE) for cell in row.split("|")[1:]]
    numbers = [number for cell in cells for number in re.findall(r"\d[\d.,]*", cell.translate(separators))]
    return [float(number.replace(",", "")) for number in numbers]


@pytest.mark.parametrize("language", PAGES)
def test_each_number_of_a_table_was_measured_in_the_run_that_the_page_names(language):
    known = measured(report(language))
    text = page(language).read_text()
    head, _rest, tail = text.partition("disco por tarefa" if language == "pt-BR" else "disk a finished job")
    numbers = said(head, language) + said(tail.partition("\n")[2], language)
    assert len(numbers) > 60
    # two decimals below ten
    unknown = [n for n in numbers if not any(abs(n - value) <= 0.0051 + 0.005 * value for value in known)]
    assert not unknown


def test_both_languages_say_the_same_numbers():
    assert said(page("en").read_text(), "en") == said(page("pt-BR").read_text(), "pt-BR")


def test_the_run_took_all_figures_twice():
    lines = report("en")
    assert {line["figure"] for line in lines if line["kind"] == "figure"} == set(FIGURES)
    assert min(line["turns"] for line in lines if line["kind"] == "figure" and line["figure"] != "million") >= 2
