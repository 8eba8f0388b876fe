"""No accepted job is lost: each has a way on, and whoever is to take it there does so."""

from django.utils.translation import gettext_noop

from jobs.invariants.base import Invariant, Promise
from jobs.states import PARKED, TIMED, State

STATES = ", ".join(f"'{state}'" for state in State)
INSTANTS = ", ".join(f"'{waiting}'" for waiting in TIMED)
GATES = ", ".join(f"'{waiting}'" for waiting in PARKED)
LATE = "now() - %(margin)s::float8 * interval '1 second'"

HAS_A_WAY_ON = f"""
SELECT id FROM looked AS j
WHERE state NOT IN ({STATES}) OR state IN ('Enqueued', 'Processing') AND dispatch_id IS NULL
   OR state = 'Enqueued' AND enqueued_at IS NULL
   OR state = 'Scheduled' AND CASE
       WHEN waiting_for IN ({INSTANTS}) THEN run_at IS NULL
       WHEN run_at IS NOT NULL THEN true
       WHEN waiting_for = 'parents' THEN NOT EXISTS (
           SELECT FROM turno.job_dependencies AS d WHERE d.child_id = j.id
       )
       WHEN waiting_for IN ({GATES}) THEN gate IS NULL
       ELSE true END
"""
HAS_AN_OWNER = """
SELECT id FROM looked
WHERE CASE WHEN state = 'Processing'
    THEN worker_id IS NULL OR lease_expires_at IS NULL OR claim_id IS NULL OR claimed_at IS NULL
    ELSE worker_id IS NOT NULL OR lease_expires_at IS NOT NULL OR claim_id IS NOT NULL OR claimed_at IS NOT NULL END
"""
DUE = f"SELECT id FROM turno.jobs WHERE state = 'Scheduled' AND run_at < {LATE} ORDER BY run_at, id LIMIT %(most)s::int"
LEASES = f"""
SELECT id FROM turno.jobs
WHERE state = 'Processing' AND lease_expires_at < {LATE} - %(grace)s::float8 * interval '1 second'
ORDER BY lease_expires_at LIMIT %(most)s::int
"""
FALLEN = """
SELECT j.id FROM parked AS j
WHERE j.waiting_for = 'parents' AND EXISTS (
    SELECT FROM turno.job_dependencies AS d
    CROSS JOIN LATERAL (SELECT state FROM turno.jobs WHERE id = d.parent_id OFFSET 0) AS p
    WHERE d.child_id = j.id AND d.policy = 'cancel' AND p.state IN ('Failed', 'Cancelled')
)
"""
# A probe has until its deadline to be claimed where somebody takes from its queue, and from there its own time.
PROBES = f"""
SELECT c.type AS id FROM turno.circuits AS c
WHERE c.state = 'half_open' AND c.probe_deadline < {LATE} AND NOT EXISTS (
    SELECT FROM turno.jobs AS j
    WHERE j.id = c.probe_job_id AND (
        j.state = 'Enqueued'
        OR j.state = 'Processing' AND j.claimed_at + COALESCE(c.probe_seconds, 0) * interval '1 second' >= {LATE}
    ) OFFSET 0
)
"""
SCHEDULES = f"""
SELECT name AS id FROM turno.recurring_jobs WHERE enabled AND error IS NULL AND next_run_at < {LATE}
ORDER BY next_run_at LIMIT %(most)s::int
"""
# Not while a worker says that the broker is away: then they wait, and are safe.
MESSAGES = f"""
SELECT id FROM turno.outbox_messages
WHERE COALESCE(locked_until, created_at) < {LATE} AND failures = 0 AND NOT EXISTS (
    SELECT FROM turno.workers AS w
    WHERE w.seen_at > now() - %(silent)s::float8 * interval '1 second' AND w.problems @> '[{{"part": "broker"}}]'
)
ORDER BY id LIMIT %(most)s::int
"""

WAYS = (
    Invariant(
        "has_a_way_on",
        Promise.LOST,
        gettext_noop("Each job that has not ended can go on: by its token, at an instant, or when a gate opens."),
        gettext_noop(
            "The row was changed past Turno. Cancel the job and enqueue it again; keep its row for the report."
        ),
        HAS_A_WAY_ON,
    ),
    Invariant(
        "has_an_owner",
        Promise.LOST,
        gettext_noop("Each running job has an owner with a lease, and no other job has one."),
        gettext_noop("The row was changed past Turno. Look whether the constraints of its table are still there."),
        HAS_AN_OWNER,
    ),
    Invariant(
        "due_is_enqueued",
        Promise.LOST,
        gettext_noop("A job whose instant has come is enqueued at once."),
        gettext_noop(
            "The promoter does not keep up. Look for its errors in the logs of the workers, and restart them."
        ),
        DUE,
        soon=True,
    ),
    Invariant(
        "loss_is_recovered",
        Promise.LOST,
        gettext_noop("A job whose worker stopped answering is taken from it and tried again."),
        gettext_noop("Recovery does not end these executions: the logs of the leader say what the database refused."),
        LEASES,
        soon=True,
    ),
    Invariant(
        "child_falls_with_parent",
        Promise.LOST,
        gettext_noop("A job whose parent failed is cancelled with it, where it asked for that."),
        gettext_noop(
            "Requeue the parent, or cancel these jobs; look for errors of the gates in the logs of the leader."
        ),
        FALLEN,
        soon=True,
    ),
    Invariant(
        "probe_ends",
        Promise.LOST,
        gettext_noop("The probe of a breaker comes to an end, so that the jobs behind it go on."),
        gettext_noop("Cancel the probe's job, and look for errors of the circuits in the logs of the leader."),
        PROBES,
        soon=True,
    ),
    Invariant(
        "schedule_fires",
        Promise.LOST,
        gettext_noop("A recurring job whose instant has come is fired."),
        gettext_noop("Open the recurring job and save it anew; the logs of the leader say why it could not be fired."),
        SCHEDULES,
        soon=True,
    ),
    Invariant(
        "messages_leave",
        Promise.LOST,
        gettext_noop("A message for the broker leaves the outbox."),
        gettext_noop("Look at the broker's state under health; the workers publish again as soon as it answers."),
        MESSAGES,
        soon=True,
        broker=True,
    ),
)
