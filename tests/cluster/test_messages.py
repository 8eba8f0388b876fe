"""Messages that are duplicated, reordered, replayed from the past, forged or broken: dropped or put aside."""

import json
import random
from uuid import uuid4

import pytest

import tests.kit.handlers  # noqa: F401
from jobs import operations
from jobs.enqueue import JobRequest, enqueue_many
from jobs.models import Job, JobAttempt
from tests.kit.processes import eventually
from tests.kit.rabbitmq_server import raw

pytestmark = pytest.mark.crash
COUNT, COPIES, BROKEN = 60, 4, 25


def body(job: object, token: object) -> bytes:
    return json.dumps({"v": 1, "job": str(job), "token": str(token)}).encode()


def test_a_flood_of_copies_and_rubbish_starts_each_job_once(fleet, cluster):
    rng = random.Random(5)
    fleet.start("a", "default:4").wait_ready()
    fleet.start("b", "default:4").wait_ready()
    requests = [JobRequest("probe.async", {"key": str(n), "hold": 0.02}, delay=1.0) for n in range(COUNT)]
    ids = [made.id for made in enqueue_many(requests)]
    operations.cancel(ids[0])
    Job.objects.filter(pk=ids[0]).delete()

    # Some come before their job is due, most while it runs or later; none but the current token counts.
    flood = [body(id_, uuid4()) for id_ in ids for _ in range(COPIES)]
    broken = [b"", b"{", b"\xff\xfe", b"[]", b'{"v": 1}', body("x", "y"), b'{"v": 2, "job": 1}']
    flood += broken + [rng.randbytes(rng.randrange(1, 5000)) for _ in range(BROKEN - len(broken))]
    rng.shuffle(flood)
    tokens: dict[object, object] = {}

    def all_ended() -> bool:
        for id_, token in Job.objects.filter(dispatch_id__isnull=False).values_list("id", "dispatch_id"):
            if tokens.get(id_) != token:
                tokens[id_] = token
                for _ in range(COPIES):
                    cluster.put(body(id_, token))
        return not Job.objects.exclude(state="Succeeded").exists()

    with raw(cluster.node.url) as channel:
        for message in flood:
            channel.basic_publish("", cluster.queue(), message)
    eventually(all_ended, "all have ended")
    for id_, token in tokens.items():  # replayed from the past
        cluster.put(body(id_, token))

    eventually(lambda: cluster.depth() == 0, "every message was dealt with")
    eventually(lambda: cluster.depth("default_error") == BROKEN, "what is none of ours is put aside")
    keys = [parts[1] for parts in fleet.starts()]
    assert sorted(keys) == sorted(str(n) for n in range(1, COUNT))
    assert JobAttempt.objects.count() == COUNT - 1
    assert all(len(worker.events("worker.ready")) == 1 for worker in fleet.workers)
