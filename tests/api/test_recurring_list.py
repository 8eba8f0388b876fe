"""Recurring jobs as the API lists and shows them, whatever stands in their rows."""

import pytest

from jobs.outcomes import Ending
from jobs.states import FailureKind, Outcome, Reason, State
from jobs.transitions import claim_next, settle
from tests.transitions.edges import CALLER, claimant
from tests.transitions.recurring import fire_all, half_a_day_away, make_many, make_recurring
from tests.transitions.rows import Sql, ago, make_job

ROUTE = "/api/recurring-jobs"


def test_the_list_is_paged_with_the_next_one_first(api):
    make_many(7, next_run_at="now() + n * interval '1 minute'")
    off = make_recurring(name="off", enabled=False, next_run_at=None)
    found, cursor = [], ""
    for _page in range(4):
        page = api.get(f"{ROUTE}?page_size=2{cursor}").json
        found += [row["name"] for row in page["items"]]
        cursor = f"&cursor={page['next_cursor']}"
    assert found == [f"many-{n}" for n in range(1, 8)] + ["off"]
    assert page["next_cursor"] is None
    assert [row["id"] for row in api.get(f"{ROUTE}?search=OFF").json["items"]] == [str(off)]
    assert len(api.get(f"{ROUTE}?shown=enabled").json["items"]) == 7
    for bad in ("x", "", "00", "ff", "2e", "6e6f"):
        assert list(api.get(f"{ROUTE}?cursor={bad}").problem(400)["errors"]) == ["cursor"]
    assert list(api.get(f"{ROUTE}?cursr=x").problem(400)["errors"]) == ["cursr"]


def test_a_row_shows_its_last_run_what_is_active_and_what_was_left_out(api):
    id_ = make_recurring(cron=f"* {half_a_day_away()} * * *", next_run_at=ago(1))
    make_job(recurring_job_id=id_, fired_for=ago(60), type="test.any")
    [run] = claim_next([("default", 1)], types=["test.any"], **claimant())
    how = (State.FAILED, Outcome.FAILED, Reason.ATTEMPTS_USED_UP)
    settle([Ending(run.id, run.dispatch_id, *how, failure_kind=FailureKind.ERROR, duration=5.0)], worker_id=CALLER)
    make_job("Processing", recurring_job_id=id_, fired_for=ago(30))
    fire_all()
    [row] = api.get(ROUTE).json["items"]
    assert (row["last"]["state"], row["last"]["seconds"], row["active"]) == ("Failed", 5, 1)
    assert row["last"]["started_at"] <= row["last"]["finished_at"]
    assert (row["skipped"], row["last_skipped_why"], row["times_a_day"]) == (1, "overlap", 60)
    detail = api.get(f"{ROUTE}/{id_}").json
    assert [(run["state"], run["seconds"]) for run in detail["last_runs"]] == [("Failed", 5)]
    assert [row["id"] for row in api.get(f"{ROUTE}?shown=failing").json["items"]] == []  # its last run has not ended


@pytest.mark.parametrize(
    "columns",
    [
        {"next_run_at": Sql("'infinity'::timestamptz")},
        {"next_run_at": Sql("'-infinity'::timestamptz")},
        {"last_run_at": Sql("'200000-01-01'::timestamptz")},
        {"cron": "x", "timezone": "y", "error": "z"},
        {"payload": Sql("('{\"a\": 1' || repeat('0', 5000) || '}')::jsonb")},
        {"payload": Sql("'[1, null]'::jsonb")},
        {"name": "Strange \n name"},
        {"name": "x" * 5000},
        {"disabled_by": "", "enabled": False},
    ],
)
def test_whatever_people_wrote_into_a_row_the_list_and_the_page_show_it(api, columns):
    id_ = make_recurring(**columns)
    other = make_recurring(name="other")
    names = [row["id"] for row in api.get(ROUTE).json["items"]]
    assert sorted(names) == sorted([str(id_), str(other)])
    assert api.get(f"{ROUTE}/{id_}").status == 200
    cursor = api.get(f"{ROUTE}?page_size=1").json["next_cursor"]
    assert len(api.get(f"{ROUTE}?page_size=1&cursor={cursor}").json["items"]) in (0, 1)
