"""The public door to jobs: `from turno.jobs import enqueue`.

    with transaction.atomic():
        order.save()
        enqueue("report.generate", {"rows": 500}, unique_key=f"report-{order.pk}", delay=60)

The job exists when the transaction commits, and never did when it rolls back.
"""

from jobs.enqueue import Enqueued, JobRequest, enqueue, enqueue_many
from jobs.operations import cancel, requeue

__all__ = ["Enqueued", "JobRequest", "cancel", "enqueue", "enqueue_many", "requeue"]
