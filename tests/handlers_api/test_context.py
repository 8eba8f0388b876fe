"""What a handler says to its context and asks of it."""

import asyncio
import threading
from decimal import Decimal

import pytest
from django.utils import translation
from django.utils.translation import gettext_lazy

from jobs.cancellation import CancelFlag
from jobs.conf import overridden
from jobs.context import LINE_LENGTH, STAGE_LENGTH, JobContext
from jobs.errors import JobCancelled, JobTimeout, LeaseLost, ResultError
from jobs.text import clean
from turno.testing import FakeContext


@pytest.fixture
def ctx():
    return FakeContext("context.test")


def test_the_base_class_can_not_be_made_by_itself():
    with pytest.raises(TypeError, match="abstract"):
        JobContext(job_id=None, type="x")


def test_progress_never_goes_back_and_stays_between_0_and_100(ctx):
    for percent in (-5, 10, 9.99, 55.9, 20, 300):
        ctx.report_progress(percent)
    assert [percent for percent, _ in ctx.progresses] == [0, 10, 10, 55, 55, 100]
    assert ctx.progress == 100


@pytest.mark.parametrize("percent", [float("nan"), float("inf"), float("-inf")])
def test_a_progress_that_is_no_number_of_percent_is_refused(ctx, percent):
    with pytest.raises(ValueError, match="percent: expected a number from 0 to 100"):
        ctx.report_progress(percent)


@pytest.mark.parametrize("percent", ["50", None, True, Decimal(5)])
def test_a_progress_of_another_type_is_refused(ctx, percent):
    with pytest.raises(TypeError, match="percent: expected a number from 0 to 100, got"):
        ctx.report_progress(percent)
    assert ctx.progresses == []


def test_a_stage_is_one_clean_line_and_leaves_the_progress(ctx):
    ctx.report_progress(40, "Opening")
    ctx.stage("  Re\x00ading\n the \t file ")
    ctx.report_progress(50)
    ctx.stage(gettext_lazy("Done"))
    with translation.override("en"):
        ctx.stage(gettext_lazy("Done"))
    assert ctx.progresses[:3] == [(40, "Opening"), (40, "Reading the file"), (50, "Reading the file")]
    assert ctx.progresses[-1] == (50, "Done")


def test_a_long_stage_is_cut(ctx):
    ctx.stage("x" * 1000)
    assert len(ctx.stages[0]) == STAGE_LENGTH
    assert ctx.stages[0].endswith("…")


def test_text_is_made_storable():
    assert clean("a\x00b\ud800c", 100) == "ab?c"
    assert clean("ação 🙂", 100) == "ação 🙂"
    assert clean("abcdef", 4) == "abc…"
    assert clean("abcd", 4) == "abcd"


def test_log_lines_have_a_level_and_are_cleaned(ctx):
    ctx.log("a\x00b")
    ctx.log(42, "error")
    ctx.log("x" * (LINE_LENGTH + 1), level="debug")
    assert ctx.logs[:2] == [("info", "ab"), ("error", "42")]
    assert len(ctx.logs[2][1]) == LINE_LENGTH
    with pytest.raises(ValueError, match="level: expected one of debug, info, warning, error, got 'loud'"):
        ctx.log("x", "loud")


def test_a_log_that_is_full_says_so_once(ctx):
    with overridden(limits={"log_lines": 3}), translation.override("en"):
        for number in range(10):
            ctx.log(number)
    assert ctx.logs == [
        ("info", "0"),
        ("info", "1"),
        ("info", "2"),
        ("warning", "The log of this execution is full; what follows is not kept."),
    ]


def test_a_log_is_full_by_its_bytes_too(ctx):
    with overridden(limits={"log_bytes": 1024}):
        ctx.log("ã" * 512)
        ctx.log("one more")
        ctx.log("and more")
    assert [level for level, _ in ctx.logs] == ["info", "warning"]


def test_the_logger_writes_lines_and_tracebacks_with_their_levels(ctx):
    ctx.logger.debug("at %d", 1)
    ctx.logger.info("fine")
    ctx.logger.warning("careful")
    ctx.logger.critical("broken")
    try:
        raise OSError("gone")
    except OSError:
        ctx.logger.exception("failed")
    assert ctx.logs[:4] == [("debug", "at 1"), ("info", "fine"), ("warning", "careful"), ("error", "broken")]
    level, text = ctx.logs[4]
    assert level == "error"
    assert text.startswith("failed\nTraceback")
    assert text.endswith("OSError: gone")


def test_the_logger_passes_nothing_on(ctx, caplog):
    ctx.logger.error("only here")
    assert caplog.records == []


def test_what_is_returned_goes_over_what_was_set(ctx):
    assert ctx.final_result(None) is None
    ctx.set_result({"amount": Decimal("1.50")})
    assert ctx.final_result(None) == '{"amount":"1.50"}'
    assert ctx.final_result([1]) == "[1]"


def test_the_result_is_a_snapshot(ctx):
    rows = [1]
    ctx.set_result(rows)
    rows.append(2)
    assert ctx.final_result(None) == "[1]"


def test_a_result_that_can_not_be_stored_is_refused_where_it_is_set(ctx):
    with pytest.raises(ResultError, match=r"result\.rows"):
        ctx.set_result({"rows": object()})
    with overridden(limits={"result": 1024}), pytest.raises(ResultError):
        ctx.set_result("x" * 2000)


def test_the_folder_is_made_at_the_first_access_and_goes_with_the_fake_context(ctx):
    assert ctx.files == {}
    (ctx.folder / "a.txt").write_bytes(b"1")
    (ctx.folder / "sub").mkdir()
    (ctx.folder / "sub" / "b.txt").write_bytes(b"2")
    assert ctx.files == {"a.txt": b"1", "sub/b.txt": b"2"}
    other = FakeContext()
    path = other.folder
    assert path.is_dir()
    del other
    assert not path.exists()


REASONS = [(None, JobCancelled), (JobTimeout("over 10 s"), JobTimeout), (LeaseLost("lost"), LeaseLost)]


@pytest.mark.parametrize(("reason", "kind"), REASONS)
def test_a_handler_that_should_stop_learns_why(ctx, reason, kind):
    assert not ctx.cancelled
    ctx.raise_if_cancelled()
    ctx.cancel(reason)
    ctx.cancel(JobTimeout("the first reason counts"))
    assert ctx.cancelled
    with pytest.raises(kind) as stop:
        ctx.raise_if_cancelled()
    assert "first reason" not in str(stop.value)


def test_a_sleeping_thread_wakes_and_raises_when_cancelled(ctx):
    raised = []

    def handler():
        try:
            ctx.sleep(600)
        except JobCancelled as error:
            raised.append(error)

    thread = threading.Thread(target=handler)
    thread.start()
    ctx.cancel()
    thread.join()
    assert len(raised) == 1


def test_a_waiting_thread_is_told_whether_to_stop(ctx):
    assert ctx.wait_cancelled(0) is False
    assert ctx.wait_cancelled(-1) is False
    ctx.sleep(0)
    ctx.sleep(-1)
    ctx.cancel()
    assert ctx.wait_cancelled() is True
    with pytest.raises(JobCancelled):
        ctx.sleep(0)


async def test_a_sleeping_coroutine_wakes_when_another_thread_cancels(ctx):
    sleeping = asyncio.create_task(ctx.asleep(600))
    await asyncio.sleep(0)
    await asyncio.to_thread(ctx.cancel)
    with pytest.raises(JobCancelled):
        await sleeping


async def test_waiting_in_a_loop_ends_with_the_time_or_the_cancel(ctx):
    assert await ctx.wait_for_cancel(0) is False
    await ctx.asleep(0)
    await ctx.asleep(0.001)
    event = ctx.cancelled_event()
    assert event is ctx.cancelled_event()
    assert not event.is_set()
    ctx.cancel(JobTimeout("over"))
    await event.wait()
    assert await ctx.wait_for_cancel() is True
    with pytest.raises(JobTimeout):
        await ctx.asleep(0)


async def test_an_event_that_is_asked_for_late_is_set_at_once(ctx):
    ctx.cancel()
    assert ctx.cancelled_event().is_set()


async def test_what_would_block_the_loop_is_refused_with_what_to_write(ctx):
    with pytest.raises(RuntimeError, match=r"ctx\.sleep\(\) would block the event loop; write await ctx\.asleep\(\)"):
        ctx.sleep(0)
    with pytest.raises(RuntimeError, match=r"write await ctx\.wait_for_cancel\(\)"):
        ctx.wait_cancelled(0)


def test_a_cancel_after_the_handlers_loop_was_closed_harms_nobody(ctx):
    async def handler():
        ctx.cancelled_event()

    asyncio.run(handler())
    ctx.cancel()
    assert ctx.cancelled


def test_each_loop_has_its_own_event(ctx):
    async def handler():
        event = ctx.cancelled_event()
        asyncio.get_running_loop().call_soon(ctx.cancel)
        await event.wait()
        return event

    assert asyncio.run(handler()) is not asyncio.run(handler())


def test_reports_from_many_threads_arrive_in_order(ctx):
    start = threading.Barrier(4)

    def report(offset):
        start.wait()
        for percent in range(offset, 101, 4):
            ctx.report_progress(percent)

    threads = [threading.Thread(target=report, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    percents = [percent for percent, _ in ctx.progresses]
    assert percents == sorted(percents)
    assert len(percents) == 101


def test_a_callback_of_the_flag_is_called_once_also_when_it_comes_late():
    flag, calls = CancelFlag(), []
    flag.when_set(lambda: calls.append("early"))
    assert flag.set() is True
    assert flag.set() is False
    flag.when_set(lambda: calls.append("late"))
    assert calls == ["early", "late"]
    assert isinstance(flag.error, JobCancelled)


def test_the_logger_waits_for_nobody_who_writes_by_it_too(ctx):
    """Who holds a lock of `logging`, and is broken into by a destructor that writes, would wait for the other way."""
    [handler] = ctx.logger.handlers
    with handler.lock:
        writer = threading.Thread(target=ctx.logger.info, args=("a line",), daemon=True)
        writer.start()
        writer.join(60)
        assert not writer.is_alive()
    assert ctx.logs == [("info", "a line")]
