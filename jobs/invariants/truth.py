"""What you see is true: the history tells each step, what failed stands among the errors, what ended is counted."""

from django.utils.translation import gettext_noop

from jobs.invariants.base import Invariant, Promise
from jobs.states import EDGES, FINAL

PAIRS = ", ".join(f"('{before or ''}', '{after}')" for before, after in EDGES)
ENDED = ", ".join(f"'{state}'" for state in sorted(FINAL))
LEGAL = f"""
SELECT DISTINCT l.id FROM looked AS l CROSS JOIN LATERAL (
    SELECT from_state, to_state FROM turno.job_state_changes WHERE job_id = l.id OFFSET 0
) AS c
WHERE (COALESCE(c.from_state, ''), c.to_state) NOT IN ({PAIRS})
"""
# From nothing, each from where the one before had led, and the last to where the job is.
CHAINED = """
SELECT l.id FROM looked AS l LEFT JOIN LATERAL (
    SELECT bool_and(c.from_state IS NOT DISTINCT FROM c.before) AS chained,
        (array_agg(c.to_state ORDER BY c.id DESC))[1] AS last
    FROM (
        SELECT id, from_state, to_state, lag(to_state) OVER (ORDER BY id) AS before
        FROM turno.job_state_changes WHERE job_id = l.id
    ) AS c
) AS h ON true
WHERE h.chained IS NOT TRUE OR h.last <> l.state
"""
FINISHED = f"SELECT id FROM looked WHERE (state IN ({ENDED})) <> (finished_at IS NOT NULL)"
# The letter is written with the end; a letter of an earlier life says nothing of this one.
LETTERS = """
SELECT l.id FROM looked AS l
WHERE l.state = 'Failed' AND NOT EXISTS (
    SELECT FROM turno.dead_letters AS d
    WHERE d.job_id = l.id AND d.created_at >= l.finished_at AND (d.resolved_at IS NULL OR d.resolved_how = 'discarded')
    OFFSET 0
)
"""
PENDING = """
SELECT j.id FROM (
    SELECT job_id FROM turno.dead_letters WHERE resolved_at IS NULL ORDER BY id DESC LIMIT %(pending)s::int
) AS d CROSS JOIN LATERAL (SELECT id, state FROM turno.jobs WHERE id = d.job_id OFFSET 0) AS j
WHERE j.state <> 'Failed'
"""
# Of what has ended in the minutes before this one, which is not over: what was counted with it, of more than `ended` a
# part. Jobs are deleted in time, and some may be more.
SUCCESSES = """
SELECT e.queue || ' ' || e.type AS id FROM (
    SELECT queue, type, count(*) AS jobs FROM (
        SELECT queue, type FROM turno.jobs
        WHERE state = 'Succeeded' AND finished_at < date_trunc('minute', now())
          AND finished_at >= COALESCE(%(since)s::timestamptz, date_trunc('minute', now()) - interval '5 minutes')
        LIMIT %(ended)s::bigint
    ) AS ended GROUP BY queue, type
) AS e
WHERE e.jobs > COALESCE((
    SELECT sum(succeeded) FROM turno.metrics_minute AS m
    WHERE m.minute >= COALESCE(%(since)s::timestamptz, date_trunc('minute', now()) - interval '5 minutes')
      AND m.queue = e.queue AND m.type = e.type
), 0)
"""

TRUTH = (
    Invariant(
        "changes_are_legal",
        Promise.TRUTH,
        gettext_noop("Every change of a job's state is one that may happen."),
        gettext_noop(
            "The history was written past Turno, or its constraint is gone. Report it with the job's timeline."
        ),
        LEGAL,
    ),
    Invariant(
        "history_is_whole",
        Promise.TRUTH,
        gettext_noop("A job's history begins with its creation, has no gap, and ends where the job is."),
        gettext_noop("Somebody changed the job or its history past Turno. Report it with the job's timeline."),
        CHAINED,
    ),
    Invariant(
        "ended_when_final",
        Promise.TRUTH,
        gettext_noop("A job has the instant of its end exactly when it has ended."),
        gettext_noop("The row was changed past Turno. Look whether the constraints of its table are still there."),
        FINISHED,
    ),
    Invariant(
        "failed_is_an_error",
        Promise.TRUTH,
        gettext_noop("A job that failed stands in the queue of errors, until somebody has dealt with it."),
        gettext_noop("Requeue these jobs from the list of jobs; the letters of their ends were deleted past Turno."),
        LETTERS,
    ),
    Invariant(
        "error_has_failed",
        Promise.TRUTH,
        gettext_noop("Whatever stands in the queue of errors is a job that failed."),
        gettext_noop("Discard these errors: their jobs have gone on meanwhile."),
        PENDING,
    ),
    Invariant(
        "successes_are_counted",
        Promise.TRUTH,
        gettext_noop("The figures of a minute count every job that succeeded in it."),
        gettext_noop(
            "Rows of the minute's figures were deleted or changed past Turno; later minutes are not concerned."
        ),
        SUCCESSES,
    ),
)
