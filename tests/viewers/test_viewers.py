"""A page that many people look at costs the database what it costs for one, and never a look at the whole table."""

import pytest

from tests.kit.processes import database_url
from tests.viewers.crowd import PAGES, compare, house, scans

BOUND = 11_000  # rows: a list counts no further than 10,000, and where most rows match it needs no index for that
OWN_ROWS = {"/painel/tarefas"}  # a list's rows follow the viewer's filter and page


def costs_as_one(folder, *, jobs, crowd, seconds, pages):
    url = database_url()
    with house(url, folder, jobs=jobs) as site:
        site.get(pages[0])
        for page in pages:
            before = scans(url)
            one, many = compare(site, page, crowd=crowd, seconds=seconds)
            assert many.fetches > one.fetches
            assert many.signals > 0
            # A statement more or less at the ends of the two windows is nothing.
            figures = f"{page}: {one.statistics} of {one.total} -> {many.statistics} of {many.total}"
            assert many.statistics < 2 * one.statistics + 10, f"{figures}\n{many.most()}"
            assert page in OWN_ROWS or many.total < 2 * one.total + 10, f"{figures}\n{many.most()}"
            times, rows = (after - first for after, first in zip(scans(url), before, strict=True))
            # One of the empty table, before the house was filled, may be told of late: it has read no row.
            assert rows <= (times * BOUND if page in OWN_ROWS else 0), f"{page}: {times} scans, {rows} rows"
        site.end()


@pytest.mark.crash
def test_twenty_viewers_of_the_painel_cost_the_database_what_one_does(clean_tables, tmp_path):
    costs_as_one(tmp_path, jobs=30_000, crowd=20, seconds=8, pages=PAGES[:1])


@pytest.mark.longo
def test_fifty_viewers_of_each_screen_cost_a_database_of_200_000_jobs_what_one_does(clean_tables, tmp_path):
    costs_as_one(tmp_path, jobs=200_000, crowd=50, seconds=60, pages=PAGES)
