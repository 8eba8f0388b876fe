"""The log of a job: by keys, by levels, older lines on request, and as a file."""

import re
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.test import Client

from jobs.queries import LogKey, log_lines, log_size
from tests.api.client import KEY
from tests.database.explain import nodes, plan_of
from tests.transitions import rows

pytestmark = pytest.mark.django_db
WRITE = """
INSERT INTO turno.job_logs (job_id, execution, number, level, message)
SELECT %s, %s, n, (ARRAY['info', 'debug', 'warning', 'info', 'error'])[1 + n %% 5], 'line ' || n
FROM generate_series(1, %s) AS n
"""


@pytest.fixture
def browser():
    cache.clear()
    client = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    client.post("/entrar", {"chave": KEY})
    return client


def job_with(*counts):
    made = rows.make_job("Processing", executions=len(counts))
    for execution, count in enumerate(counts, 1):
        rows.execute(WRITE, made.id, execution, count)
    return made


def ask(browser, made, query=""):
    response = browser.get(f"/painel/tarefas/{made.id}/log{query}")
    keys = re.findall(r'data-k="([\d-]+)"', response.content.decode())
    return response, keys


def test_the_page_shows_the_end_of_the_last_execution(browser):
    made = job_with(3, 10_000)
    html = browser.get(f"/painel/tarefas/{made.id}").content.decode()
    keys = re.findall(r'data-k="([\d-]+)"', html)
    assert (len(keys), keys[0], keys[-1]) == (500, "2-9501", "2-10000")
    assert "10,000 lines" in html
    assert 'data-last="2-10000"' in html


def test_a_level_is_chosen_by_the_address(browser):
    made = job_with(100)
    html = browser.get(f"/painel/tarefas/{made.id}?nivel=erros").content.decode()
    assert re.findall(r'data-k="1-(\d+)"', html) == [str(n) for n in range(4, 100, 5)]
    assert len(ask(browser, made, "?nivel=avisos")[1]) == 40
    assert len(ask(browser, made, "?nivel=nonsense")[1]) == 100


def test_later_lines_are_asked_for_by_the_key_of_the_last_one(browser):
    made = job_with(10, 2)
    response, keys = ask(browser, made, "?depois=1-8")
    assert keys == ["1-9", "1-10", "2-1", "2-2"]
    assert "Attempt 2" in response.content.decode()
    assert response["X-Turno-More"] == "0"
    assert ask(browser, made, "?depois=2-2")[0].status_code == 204


def test_older_lines_come_in_pages(browser):
    made = job_with(1200)
    response, keys = ask(browser, made, "?antes=1-701&tentativa=1")
    assert (keys[0], keys[-1], response["X-Turno-More"]) == ("1-201", "1-700", "1")
    response, keys = ask(browser, made, "?antes=1-201&tentativa=1")
    assert (len(keys), response["X-Turno-More"]) == (200, "0")
    assert ask(browser, made, "?antes=1-1")[0].status_code == 204


@pytest.mark.parametrize("query", ["?depois=x", "?antes=", "?depois=1", "?depois=1-2-3", "?antes=99999999999-1"])
def test_what_is_no_key_is_refused(browser, query):
    assert ask(browser, job_with(1), query)[0].status_code == 400


def test_a_job_that_is_gone_has_no_lines(browser):
    made = job_with(1)
    rows.execute("DELETE FROM turno.jobs WHERE id = %s", made.id)
    assert ask(browser, made)[1] == []


def test_the_log_is_a_text_file(browser):
    made = job_with(3, 4)
    response = browser.get(f"/painel/tarefas/{made.id}/log.txt?tentativa=2")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["Content-Disposition"] == f'attachment; filename="turno-{made.id}-2.log"'
    lines = response.content.decode().splitlines()
    assert len(lines) == 4
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z 2 debug   line 1", lines[0])
    assert len(browser.get(f"/painel/tarefas/{made.id}/log.txt").content.splitlines()) == 7


def test_every_line_stands_in_the_file_however_many(browser):
    assert len(browser.get(f"/painel/tarefas/{job_with(2345).id}/log.txt").content.splitlines()) == 2345


def test_keys_are_written_and_read_alike():
    assert LogKey.parse(str(LogKey(3, 14))) == LogKey(3, 14)
    assert log_lines(uuid4()).items == []
    assert log_size(uuid4(), 1) == 0


def test_a_walk_reads_the_lines_that_it_shows_and_no_others():
    from jobs.queries import joblog

    made = job_with(5000)
    rows.execute("ANALYZE turno.job_logs")
    params = {"id": made.id, "only": None, "levels": ["info"], "limit": 500, "execution": 1, "number": 4900}
    for sql in (joblog.AFTER, joblog.BEFORE, joblog.LAST):
        plan = plan_of(sql, params)
        assert not [node for node in nodes(plan) if node["Node Type"] in {"Seq Scan", "Sort"}]
    (scan,) = [node for node in nodes(plan_of(joblog.AFTER, params)) if "Index Name" in node]
    assert "ROW(execution, number)" in scan["Index Cond"]
