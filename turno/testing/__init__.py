"""The public door of handlers' tests: run a handler inline, see what was enqueued, run what waits, move time.

```python
from turno.testing import assert_enqueued, drain, frozen_time, run_job

def test_an_invoice_is_rendered():  # one handler, without a database
    run = run_job(render, {"number": 7})
    assert run.result == {"number": 7}
    assert run.files["invoice.txt"] == b"Invoice 7"
    assert run.stages == ["Rendering"]

def test_an_order_is_billed(db):  # what the code under test enqueued, run as a worker runs it, here and now
    place_order(7)
    assert_enqueued(render, payload={"number": 7}, queue="reports")
    assert drain().results == [{"number": 7}]

def test_a_reminder_comes_after_a_week(db):  # time is moved, not waited for
    with frozen_time("2026-03-01T09:00:00Z") as clock:
        remind_later(7)
        assert not drain()
        clock.advance(days=7)
        assert len(drain().succeeded) == 1
```

`run_job` needs no service at all; the rest asks PostgreSQL, inside the test's own transaction where there is one
(Django's TestCase, the `db` fixture of pytest-django) as well as without. There (TransactionTestCase, the fixture
`transactional_db`) jobs stay until `clear_jobs()`.
"""

from turno.testing.cleared import clear_jobs
from turno.testing.clock import Clock, frozen_time
from turno.testing.drained import Drained, DrainedRun, DrainLimit
from turno.testing.draining import adrain, drain
from turno.testing.inline import FakeContext, Run, arun_job, run_job, temporary_types
from turno.testing.waiting import WaitingJob, assert_enqueued, enqueued, refute_enqueued

__all__ = [
    "Clock",
    "DrainLimit",
    "Drained",
    "DrainedRun",
    "FakeContext",
    "Run",
    "WaitingJob",
    "adrain",
    "arun_job",
    "assert_enqueued",
    "clear_jobs",
    "drain",
    "enqueued",
    "frozen_time",
    "refute_enqueued",
    "run_job",
    "temporary_types",
]
