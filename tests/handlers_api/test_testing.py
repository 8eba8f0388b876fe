"""turno.testing: a handler run inline."""

import pytest
from pydantic import BaseModel

from jobs.errors import Invalid, ResultError, UnknownType
from jobs.registry import catalogue
from turno.handlers import JobCancelled, PermanentJobError, Snooze, job_type
from turno.testing import FakeContext, arun_job, run_job, temporary_types


class Rows(BaseModel):
    rows: int = 2


@job_type("testing.plain")
def plain(ctx, payload: Rows):
    """Works through rows."""
    for row in range(payload.rows):
        ctx.report_progress(100 * (row + 1) / payload.rows, f"Row {row}")
        ctx.raise_if_cancelled()
    ctx.log("done")
    (ctx.folder / "rows.txt").write_text(str(payload.rows))
    return {"rows": (payload.rows, ctx.attempt)}


@job_type("testing.async")
async def coroutine(ctx, payload: Rows):
    await ctx.asleep(0)
    ctx.set_result(payload.rows)


def test_a_run_shows_what_the_handler_did():
    run = run_job(plain, {"rows": 4}, ctx=FakeContext(attempt=3))
    assert run.result == {"rows": [4, 3]}
    assert run.ctx.progresses == [(25, "Row 0"), (50, "Row 1"), (75, "Row 2"), (100, "Row 3")]
    assert run.stages == ["Row 0", "Row 1", "Row 2", "Row 3"]
    assert (run.progress, run.logs, run.files) == (100, [("info", "done")], {"rows.txt": b"4"})


def test_a_handler_may_be_named_by_its_type_or_given_as_one():
    with temporary_types():
        job_type("testing.named")(plain)
        assert run_job("testing.named").result == {"rows": [2, 1]}
        assert run_job(catalogue.get("testing.named")).result == {"rows": [2, 1]}
    assert catalogue.get("testing.named") is None


async def test_async_tests_await_both_kinds():
    assert (await arun_job(coroutine, {"rows": 5})).result == 5
    assert (await arun_job(plain)).result == {"rows": [2, 1]}


def test_a_plain_test_runs_a_coroutine_too():
    assert run_job(coroutine).result == 2


def test_a_job_can_be_cancelled_at_a_percentage():
    ctx = FakeContext(cancel_at=50)
    with pytest.raises(JobCancelled):
        run_job(plain, {"rows": 4}, ctx=ctx)
    assert ctx.progress == 50


def test_a_snooze_is_no_error_whether_raised_or_returned():
    def raised(ctx):
        raise Snooze(30)

    def returned(ctx):
        return Snooze(5, "later")

    with temporary_types():
        assert run_job(job_type("testing.raised")(raised)).snooze.delay == 30
        assert str(run_job(job_type("testing.returned")(returned)).snooze) == "later"


def test_errors_reach_the_test_as_they_are():
    def failing(ctx, payload):
        if payload.get("permanent"):
            raise PermanentJobError("no")
        return object()

    with temporary_types():
        job_type("testing.failing")(failing)
        with pytest.raises(PermanentJobError, match="no"):
            run_job(failing, {"permanent": True})
        with pytest.raises(ResultError, match=r"^result: object"):
            run_job(failing)
    with pytest.raises(Invalid):
        run_job(plain, {"rowz": 1})
    with pytest.raises(UnknownType):
        run_job("testing.nowhere")
    with pytest.raises(TypeError, match="is no handler; expected what @job_type decorates"):
        run_job(print)


def test_the_folder_may_be_given(tmp_path):
    run_job(plain, ctx=FakeContext(folder=tmp_path))
    assert (tmp_path / "rows.txt").read_text() == "2"
