"""What the API's document says of its schemas: their docstrings once more, where the tools of translators see them.

`openapi.translated` looks each docstring up; a test holds the two together.
"""

from django.utils.translation import gettext_noop

DESCRIPTIONS = (
    gettext_noop("A job that was enqueued, or the one that was there already."),
    gettext_noop("The six states of a job."),
    gettext_noop("Problem Details (RFC 9457), with further members by the kind of problem."),
    gettext_noop("A job to enqueue, now or for later."),
    gettext_noop("Which jobs, in which order, which page."),
    gettext_noop("Why a job ended Failed."),
    gettext_noop("A job, as lists show it."),
    gettext_noop("A page of jobs; next_cursor is null at the end."),
    gettext_noop("What a Scheduled job waits for: an instant (the first four) or a gate (parked)."),
    gettext_noop("The worker of an execution, as it was then."),
    gettext_noop("The jobs of a batch, in the order of the request."),
    gettext_noop("Up to 1000 jobs, enqueued all or none."),
    gettext_noop("One execution that has ended."),
    gettext_noop("One step of the time line."),
    gettext_noop("A job with everything that is known of it, except its log."),
    gettext_noop("How one execution ended."),
    gettext_noop("Why a job changed state; stored with each change, worded for people by the screens."),
    gettext_noop("Which lines of a job's log."),
    gettext_noop("A line that a handler wrote."),
    gettext_noop("Lines of a log; ask with after=next_after for the following ones, null at the end."),
    gettext_noop("What became of the job."),
    gettext_noop("Why a job is cancelled."),
    gettext_noop("What ended in a span of time; means in seconds."),
    gettext_noop("The figures of now and of the last 24 hours."),
    gettext_noop("A worker process; state is Online, Draining, Silent or Offline, by the database's clock."),
    gettext_noop("The workers, live ones first."),
    gettext_noop("Why a queue is paused, since when, by whom and until when."),
    gettext_noop("A queue: what waits, where there is room, whether it is paused."),
    gettext_noop("The messages that wait for the broker; zeros where PostgreSQL carries the work."),
    gettext_noop("The queues, by name."),
    gettext_noop("A job type and what holds for its jobs; registered is false for one that was only seen."),
    gettext_noop("A breaker that is not closed: the type's jobs wait parked until one that is tried succeeds."),
    gettext_noop("The job types, by name."),
    gettext_noop("What answers here, and how one is let in."),
    gettext_noop(
        "`key`: a key is configured; `open`: none, and this request needs none; `closed`: none, and none would do."
    ),
    gettext_noop("The process is alive."),
    gettext_noop("What one probe found; since is when this process first saw it so."),
    gettext_noop("What requests depend on answers; status is ready, or degraded while something else does not."),
    gettext_noop("Which dead letters, which page."),
    gettext_noop("A job that ended Failed and waits for a person, or was dealt with by one."),
    gettext_noop(
        "A page of dead letters, newest first; it may hold fewer than asked for, only next_cursor null is the end."
    ),
    gettext_noop("What became of the dead letter; state is its job's."),
    gettext_noop("Which jobs; every condition must hold. At least one: an empty filter would mean all jobs."),
    gettext_noop(
        "Which dead letters; every condition must hold. At least one: an empty filter would mean all of them."
    ),
    gettext_noop("The jobs of an act over many: the named, or all that match a filter."),
    gettext_noop("The jobs to cancel, and why."),
    gettext_noop("The dead letters of an act over many: the named, or all pending ones that match a filter."),
    gettext_noop("One of those that the act would meet."),
    gettext_noop("What an act over many would apply to; nothing was changed."),
    gettext_noop("An act over many, which runs on the server; ask for it again until ended is true."),
    gettext_noop("What an act is done to."),
    gettext_noop("What is done; dead letters know requeue and discard, jobs the others and requeue."),
)
