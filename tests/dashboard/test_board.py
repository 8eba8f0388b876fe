"""The shift board: order, columns, pools, what a slot shows."""

import re

import pytest
from django.utils import translation

from dashboard import board as shift
from dashboard.board import detail, layout
from tests.dashboard.boards import ALL, board, depth, pause, running, worker

EVIL = "<script>window.__x=1</script>\"'><img src=x onerror=window.__x=2>"


@pytest.fixture(autouse=True)
def english():
    with translation.override("en"):
        yield


def html(density, *workers, depths=(), **more):
    return shift.whole(board(*workers, **more), list(depths), density).body()


def detailed(*workers, **more):
    return html(shift.DETAIL, *workers, **more)


def mosaic(*workers, **more):
    return html(shift.MOSAIC, *workers, **more)


def test_those_without_a_heartbeat_come_first_then_those_that_drain_then_names_as_people_count():
    names = [("worker-10", "Online"), ("worker-2", "Online"), ("z", "Draining"), ("y", "Silent"), ("x", "Offline")]
    rows = layout.rows(worker(name, state=state) for name, state in names)
    assert [row.worker.name for row in rows] == ["x", "y", "z", "worker-2", "worker-10"]


def test_a_queue_has_as_many_columns_as_the_worker_with_the_most_slots_of_it():
    rows = layout.rows([worker("a", {"default": 4, "critical": 1}), worker("b", {"default": 2, "files": 0})])
    assert [(lane.queue, lane.width) for lane in layout.lanes(rows)] == [("critical", 1), ("default", 4)]


@pytest.mark.parametrize(
    ("workers", "slots", "density"),
    [(1, 1, "detalhe"), (12, 10, "detalhe"), (13, 1, "mosaico"), (1, 11, "mosaico"), (60, 64, "mosaico")],
)
def test_many_workers_or_columns_make_a_mosaic(workers, slots, density):
    rows = layout.rows(worker(f"w-{n}", {"default": slots}) for n in range(workers))
    assert layout.automatic(rows) == density


def test_a_busy_slot_says_type_stage_time_and_progress():
    page = detailed(worker(jobs=[running("file.process", stage="Linha 48.210", elapsed=84, progress=62)]))
    assert '<span class="slot__type">file.process</span><span class="slot__stage">Linha 48.210</span>' in page
    assert '<time data-since="84">1:24</time>' in page
    assert '<progress class="progress" value="62" max="100" aria-label="Progress of file.process">' in page


def test_a_job_that_never_said_how_far_it_is_has_no_percentage():
    job = running(progress=0)
    assert '<progress class="progress" max="100"' in detailed(worker(jobs=[job]))
    assert 'data-p="x"' in mosaic(worker(jobs=[job]))


def test_free_slots_and_slots_that_take_nothing_differ():
    page = detailed(worker("a", {"default": 3, "reports": 2}, paused=frozenset({"reports"})))
    assert (page.count("slot--free"), page.count("slot--shut")) == (3, 2)
    assert detailed(worker("a", {"default": 3}, state="Draining")).count("slot--shut") == 3


def test_a_worker_without_a_queue_has_no_cell_of_it():
    page = detailed(worker("a", {"critical": 2, "default": 2}), worker("b", {"default": 1}))
    row = re.search(r'data-name="b".*?</tr>', page)[0]
    assert row.count("slot--free") == 1
    assert row.count('<td class="is-free"></td>') == 3


def test_a_job_of_a_lost_worker_says_when_it_returns():
    job = running(returns_in=27.0)
    lost = worker("a", jobs=[job], state="Silent", seen_ago=48)
    page = detailed(lost)
    assert 'class="slot slot--lost"' in page
    assert 'back in <time data-until="27">0:27</time>' in page
    assert 'silent for <time data-since="48">0:48</time>' in page
    assert page.count("slot--shut") == 7
    assert mosaic(lost).count('data-s="lost"') == 1


def test_a_job_above_its_type_s_p95_is_marked_in_words_too():
    job = running(slow=True)
    assert 'class="slot slot--slow"' in detailed(worker(jobs=[job]))
    assert "Above this type&#x27;s p95" in detailed(worker(jobs=[job]))
    assert 'data-p="6" data-s="slow"' in mosaic(worker(jobs=[job]))


@pytest.mark.parametrize(("progress", "step"), [(1, "0"), (9, "0"), (10, "1"), (62, "6"), (99, "9"), (100, "10")])
def test_cells_of_the_mosaic_move_in_steps_of_ten(progress, step):
    assert f'data-p="{step}"' in mosaic(worker(jobs=[running(progress=progress)]))


def test_a_head_says_how_full_how_deep_and_how_old_a_queue_is():
    page = detailed(worker(), depths=[depth("default", 44, 42.0, busy=17, capacity=20)])
    assert '17 of 20 · 44 queued, the oldest for <time data-since="42">0:42</time>' in page


def test_a_paused_queue_says_so_and_how_much_waits():
    page = detailed(worker(), depths=[depth("reports", 80, 9.0, parked=4, paused=pause("reports"))])
    assert "#m-paused" in page
    assert "paused · 84 queued" in page


def test_estimated_depths_are_told_as_such():
    assert "~47" in detail.waiting(depth(waiting=47_000, estimated=True))


def test_workers_with_the_same_queues_and_slots_form_a_pool_named_after_them():
    rows = layout.rows(
        [worker(f"geral-{n:02}") for n in range(3)] + [worker(f"raspagem-{n}", {"crawlers": 64}) for n in range(4)]
    )
    assert [(pool.name, len(pool.rows)) for pool in layout.pools(rows)] == [("Raspagem", 4), ("Geral", 3)]


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (["crawlers-7f9-1", "crawlers-8a2-2"], "Crawlers"),
        (["ip-10-0-0-1", "ip-10-0-0-9"], "Ip-10-0-0"),
        (["alfa", "beta"], "default"),
        (["web1-1", "web2-1"], "default"),
        (["7", "8"], "default"),
    ],
)
def test_a_pool_without_a_common_name_is_named_after_its_queues(names, name):
    (pool,) = layout.pools(layout.rows(worker(one, {"default": 2}) for one in names))
    assert pool.name == name


def test_two_pools_of_one_name_are_told_apart():
    rows = layout.rows([worker("geral-1", {"default": 2}), worker("geral-2", {"default": 4})])
    assert {pool.name for pool in layout.pools(rows)} == {"Geral (default 2)", "Geral (default 4)"}


def test_a_mosaic_s_link_says_state_and_occupancy_and_its_row_what_runs_longest():
    jobs = [running("report.generate", slot=1, elapsed=192), running("file.process", slot=2, elapsed=3)]
    page = mosaic(worker("geral-01", jobs=jobs))
    assert 'aria-label="geral-01, online, 2 of 8 slots busy"' in page
    assert "Longest: report.generate, <time" in page
    assert ">3:12</time>, Montando o PDF." in page


def test_the_densest_mosaic_has_a_class_of_its_own_by_slots():
    assert 'class="mosaic" data-roving' in mosaic(worker("a", {"default": 8}))
    assert "mosaic--16" in mosaic(worker("a", {"default": 16}))
    assert "mosaic--64" in mosaic(worker("a", {"default": 64}))
    assert "mosaic--names" in mosaic(worker("a-very-long-name", {"default": 8}))


@pytest.mark.parametrize("density", [shift.DETAIL, shift.MOSAIC])
def test_what_jobs_and_workers_say_is_never_markup(density):
    evil = worker(EVIL, {"default": 1}, [running(EVIL, stage=EVIL, slow=True)])
    page = html(density, evil, depths=[depth("default", 3, 1.0)])
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    assert "style=" not in page


def test_all_is_well_with_the_largest_board():
    crowd = [worker(f"w-{n}", ALL, [running(slot=1), running("a.b", "critical", 2)]) for n in range(59)]
    crowd.append(worker("big", {"crawlers": 64}, [running("c.d", "crawlers", n) for n in range(1, 65)]))
    page = mosaic(*crowd)
    assert page.count('<i class="c') == 59 * 8 + 64
    assert detailed(*crowd).count('class="slot"') == 59 * 2 + 64
