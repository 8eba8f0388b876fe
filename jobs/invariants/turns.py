"""No attempt runs twice: one token an attempt, one attempt an execution, slots as many as there may be."""

from django.utils.translation import gettext_noop

from jobs.invariants.base import Invariant, Promise

# The constraints and unique indexes of the models; `jobs.invariants.guards` names them.
GUARDS = """
SELECT g.name AS id FROM unnest(%(guards)s::text[]) AS g(name)
WHERE NOT EXISTS (
    SELECT FROM pg_constraint AS c
    WHERE c.connamespace = 'turno'::regnamespace AND c.conname = g.name AND c.convalidated
) AND NOT EXISTS (
    SELECT FROM pg_class AS k JOIN pg_index AS i ON i.indexrelid = k.oid
    WHERE k.relnamespace = 'turno'::regnamespace AND k.relname = g.name AND i.indisunique AND i.indisvalid
)
"""
COUNTED = """
SELECT l.id FROM looked AS l CROSS JOIN LATERAL (
    SELECT count(*) AS rows, COALESCE(max(ordinal), 0) AS last FROM turno.job_attempts WHERE job_id = l.id
) AS a
WHERE a.rows <> l.executions - (l.state = 'Processing')::int OR a.last <> a.rows
"""
# The token of a running job is nobody else's either: its end is still to be written.
TOKENS = """
SELECT DISTINCT a.job_id AS id FROM looked AS l
CROSS JOIN LATERAL (SELECT id, job_id, dispatch_id FROM turno.job_attempts WHERE job_id = l.id OFFSET 0) AS a
WHERE EXISTS (SELECT FROM turno.job_attempts AS o WHERE o.dispatch_id = a.dispatch_id AND o.id <> a.id OFFSET 0)
UNION
SELECT l.id FROM looked AS l
WHERE l.state IN ('Enqueued', 'Processing')
  AND EXISTS (SELECT FROM turno.job_attempts AS o WHERE o.dispatch_id = l.dispatch_id OFFSET 0)
"""
# The instants are those of transactions, which may have begun before they saw the row: `slack` at most.
IN_TURN = """
SELECT DISTINCT l.id FROM looked AS l CROSS JOIN LATERAL (
    SELECT started_at, lag(ended_at) OVER (ORDER BY ordinal) AS before FROM (
        SELECT ordinal, started_at, ended_at FROM turno.job_attempts WHERE job_id = l.id
        UNION ALL
        SELECT l.executions, l.claimed_at, NULL WHERE l.state = 'Processing'
    ) AS all_of_them
) AS a
WHERE a.started_at < a.before - %(slack)s::float8 * interval '1 second'
"""
FIRED = """
SELECT l.id FROM looked AS l
WHERE l.recurring_job_id IS NOT NULL AND EXISTS (
    SELECT FROM turno.jobs AS o
    WHERE o.recurring_job_id = l.recurring_job_id AND o.fired_for = l.fired_for AND o.id <> l.id OFFSET 0
)
"""
SLOT = "SELECT state, dispatch_id FROM turno.jobs WHERE id = s.job_id OFFSET 0"
STRAYS = f"""
SELECT s.job_id AS id FROM turno.concurrency_slots AS s CROSS JOIN LATERAL ({SLOT}) AS j
WHERE j.state NOT IN ('Enqueued', 'Processing') OR j.dispatch_id IS DISTINCT FROM s.dispatch_id
"""
# More slots than any of their holders allows. Not of a type's limit: whoever lowers it stops no running job.
CROWDED = """
SELECT k.value AS id FROM turno.concurrency_slots AS s
JOIN turno.concurrency_keys AS k ON k.id = s.key_id
CROSS JOIN LATERAL (SELECT concurrency_limit FROM turno.jobs WHERE id = s.job_id OFFSET 0) AS j
WHERE k.kind = 'key' GROUP BY k.value HAVING count(*) > max(j.concurrency_limit)
"""
HOLDS = """
SELECT FROM turno.concurrency_slots AS s JOIN turno.concurrency_keys AS k ON k.id = s.key_id
WHERE s.job_id = j.id AND s.dispatch_id = j.dispatch_id
"""
KEY_SLOTS = f"""
SELECT j.id FROM turno.jobs AS j
WHERE j.state = 'Processing' AND j.concurrency_key IS NOT NULL
  AND NOT EXISTS ({HOLDS} AND k.kind = 'key' AND k.value = j.concurrency_key)
"""
TYPE_SLOTS = f"""
SELECT j.id FROM turno.jobs AS j JOIN turno.job_types AS t ON t.name = j.type
WHERE j.state = 'Processing' AND t.max_running IS NOT NULL
  AND NOT EXISTS ({HOLDS} AND k.kind = 'type' AND k.value = j.type)
"""

TURNS = (
    Invariant(
        "guards_stand",
        Promise.TWICE,
        gettext_noop("Every constraint by which the database itself keeps the promises is there."),
        gettext_noop("Somebody dropped these constraints or indexes. Create them again, as the migrations have them."),
        GUARDS,
    ),
    Invariant(
        "executions_are_told",
        Promise.TWICE,
        gettext_noop("Each execution that has ended has exactly one attempt in the history."),
        gettext_noop(
            "Rows of the history were changed past Turno, or an end was written twice: report it, with a job."
        ),
        COUNTED,
    ),
    Invariant(
        "token_is_used_once",
        Promise.TWICE,
        gettext_noop("Each attempt has a token of its own, that no other attempt ever has."),
        gettext_noop("Stop the workers, and report it with the attempts of such a job: one may have run twice."),
        TOKENS,
    ),
    Invariant(
        "attempts_take_turns",
        Promise.TWICE,
        gettext_noop("An attempt begins after the one before it has ended."),
        gettext_noop("Look whether somebody has set the database's clock; else report it with the attempts of a job."),
        IN_TURN,
    ),
    Invariant(
        "fired_once",
        Promise.TWICE,
        gettext_noop("A recurring job makes one job for each of its instants."),
        gettext_noop("The unique index of fired instants is gone: create it again, as the migrations have it."),
        FIRED,
    ),
    Invariant(
        "slot_has_a_holder",
        Promise.TWICE,
        gettext_noop("A slot of a key belongs to a job that runs or is about to, with the token that it took it with."),
        gettext_noop("The sweep frees them within seconds; if they stay, look for its errors in the leader's logs."),
        STRAYS,
    ),
    Invariant(
        "key_is_not_crowded",
        Promise.TWICE,
        gettext_noop("No more jobs of a concurrency key hold a slot than it allows."),
        gettext_noop("Pause the key until they have ended, and report it with the jobs that held its slots."),
        CROWDED,
    ),
    Invariant(
        "running_holds_its_key",
        Promise.TWICE,
        gettext_noop("A running job with a concurrency key holds a slot of it."),
        gettext_noop("Pause the key until these jobs have ended: meanwhile more of them might run than it allows."),
        KEY_SLOTS,
    ),
    Invariant(
        "running_counts_for_its_type",
        Promise.TWICE,
        gettext_noop("A running job of a type with a limit holds a slot of it."),
        gettext_noop("Set the type's limit once more: those that run are seated then."),
        TYPE_SLOTS,
        soon=True,
    ),
)
