"""What holds for each of the four samples: progress, stages, slowness, failures, how it is declared."""

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest
from django.utils import translation

from jobs.errors import Invalid
from jobs.registry import catalogue, policy
from tests.samples.payloads import PAYLOADS, each_sample
from turno.handlers import JobCancelled, JobTimeout, PermanentJobError, TransientJobError
from turno.samples import DEMO_TYPES, demo_payload
from turno.samples.handlers import DESCRIPTIONS
from turno.samples.pace import SampleError
from turno.testing import FakeContext, arun_job, run_job

ROOT = Path(__file__).resolve().parents[2]


def run(name, /, ctx=None, **fields):
    return run_job(name, {**PAYLOADS[name], **fields}, ctx=ctx)


@each_sample
def test_it_reports_growing_progress_and_more_than_one_stage(name):
    found = run(name)
    percents = [percent for percent, _ in found.ctx.progresses]
    assert percents == sorted(percents)
    assert (percents[0], percents[-1]) == (0, 100)
    assert len(found.stages) >= 3
    assert found.logs


@each_sample
def test_it_takes_its_time_when_asked_to_and_moves_on_meanwhile(name, monkeypatch):
    monkeypatch.setattr("turno.samples.pace.TICK", 0.001)
    quick, slow = run(name), run(name, duration=0.02)
    assert len(slow.ctx.progresses) > len(quick.ctx.progresses)
    assert slow.result == quick.result


@each_sample
def test_a_slow_one_ends_at_once_when_cancelled(name):
    ctx = FakeContext()
    raised = []

    def work():
        try:
            run(name, ctx=ctx, duration=3600)
        except JobCancelled as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    ctx.cancel()
    thread.join()
    assert len(raised) == 1
    assert ctx.progress < 100


@each_sample
def test_a_quick_one_notices_a_cancel_between_its_steps(name):
    ctx = FakeContext(cancel_at=20)
    with pytest.raises(JobCancelled):
        run(name, ctx=ctx)
    assert ctx.progress < 100


@pytest.mark.parametrize("name", ["integration.sync", "notification.send"])
async def test_an_async_one_wakes_at_its_deadline_too(name):
    ctx = FakeContext()
    running = asyncio.create_task(arun_job(name, {**PAYLOADS[name], "duration": 3600}, ctx=ctx))
    await asyncio.sleep(0)
    ctx.cancel(JobTimeout("over"))
    with pytest.raises(JobTimeout):
        await running


@each_sample
@pytest.mark.parametrize(
    ("fail", "kind"), [("error", SampleError), ("permanent", PermanentJobError), ("transient", TransientJobError)]
)
def test_it_fails_as_its_payload_says_when_half_of_it_is_done(name, fail, kind):
    ctx = FakeContext(attempt=4)
    with pytest.raises(kind):
        run(name, ctx=ctx, fail=fail)
    assert 0 < ctx.progress < 100


@each_sample
def test_it_succeeds_after_as_many_failed_attempts_as_asked_for(name):
    for attempt in (1, 2):
        with pytest.raises(SampleError):
            run(name, ctx=FakeContext(attempt=attempt), fail="error", fail_times=2)
    assert run(name, ctx=FakeContext(attempt=3), fail="error", fail_times=2).result == run(name).result


def test_a_failure_by_chance_is_drawn_for_each_execution():
    job_id = FakeContext().job_id
    outcomes = []
    for execution in range(1, 41):
        ctx = FakeContext(job_id=job_id, execution=execution)
        try:
            run("notification.send", ctx=ctx, failure_rate=0.5)
            outcomes.append(True)
        except SampleError:
            outcomes.append(False)
    assert set(outcomes) == {True, False}
    with pytest.raises(SampleError):
        run("notification.send", failure_rate=1)


@each_sample
@pytest.mark.parametrize(
    "fields",
    [{"duration": -1}, {"duration": 3601}, {"fail": "always"}, {"fail_times": 101}, {"failure_rate": 2}, {"seed": -1}],
)
def test_a_demonstration_out_of_bounds_is_refused(name, fields):
    with pytest.raises(Invalid) as refusal:
        run(name, **fields)
    assert list(refusal.value.errors) == [f"payload.{next(iter(fields))}"]


BOUNDS = [
    ("report.generate", {"rows": 0}),
    ("report.generate", {"rows": 100_001}),
    ("report.generate", {"formats": []}),
    ("report.generate", {"title": ""}),
    ("report.generate", {"group_by": "color"}),
    ("file.process", {"lines": 50_001}),
    ("file.process", {"name": "../etc/passwd"}),
    ("file.process", {"name": ".hidden"}),
    ("file.process", {"transform": "rot13"}),
    ("integration.sync", {"page_size": 0}),
    ("integration.sync", {"known": 1.1}),
    ("notification.send", {"subject": ""}),
    ("notification.send", {"channel": "pigeon"}),
]


@pytest.mark.parametrize(("name", "fields"), BOUNDS)
def test_a_field_out_of_bounds_is_refused_by_name(name, fields):
    with pytest.raises(Invalid) as refusal:
        run(name, **fields)
    assert list(refusal.value.errors) == [f"payload.{next(iter(fields))}"]


@each_sample
def test_every_field_of_its_schema_is_described_with_an_example(name):
    schema = catalogue.schema(name)
    assert schema["additionalProperties"] is False
    for field, properties in schema["properties"].items():
        assert properties.get("description"), field
        assert properties.get("examples"), field
    examples = {field: properties["examples"][0] for field, properties in schema["properties"].items()}
    catalogue.get(name).parse(examples)


def test_queues_isolation_and_descriptions_are_as_declared():
    types = [catalogue.get(name) for name in sorted(PAYLOADS)]
    assert [policy(job).queue for job in types] == ["default", "default", "critical", "reports"]
    assert [job.isolation for job in types] == ["process", "async", "async", "process"]
    assert {job.summary for job in types} == set(DESCRIPTIONS), "a translator finds each description"


def test_demonstration_payloads_fit_and_are_repeatable():
    assert sorted(DEMO_TYPES) == sorted(PAYLOADS)
    for name in DEMO_TYPES:
        rng = Random(name)
        for _ in range(100):
            payload = demo_payload(name, rng)
            assert json.loads(json.dumps(payload)) == payload
            catalogue.get(name).parse(payload)
        assert demo_payload(name, Random(7)) == demo_payload(name, Random(7))


def test_about_one_in_ten_is_slow_and_one_in_twelve_fails():
    rng = Random(1)
    payloads = [demo_payload(rng.choice(DEMO_TYPES), rng) for _ in range(5000)]
    assert 0.08 < sum(payload["duration"] > 2 for payload in payloads) / 5000 < 0.12
    assert 0.06 < sum(payload.get("fail", "none") != "none" for payload in payloads) / 5000 < 0.10


def test_a_demonstration_of_another_type_is_refused():
    with pytest.raises(ValueError, match=r"'x\.y': expected one of report\.generate"):
        demo_payload("x.y", Random())


def test_demonstration_payloads_need_the_standard_library_only():
    code = (
        "import sys, random; from turno.samples import demo_payload;"
        "print(demo_payload('file.process', random.Random(1))['name']);"
        "assert not {'django', 'pydantic', 'jobs'} & set(sys.modules)"
    )
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(".txt")


def test_stages_are_said_in_the_language_of_the_process():
    with translation.override("en"):
        assert run("notification.send").stages[0] == "Rendering the message"
