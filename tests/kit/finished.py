"""Very many finished jobs, with all that hangs on jobs: executions, changes, lines, letters, children, messages."""

from tests.transitions.rows import execute

JOBS = """
INSERT INTO turno.jobs (id, type, queue, payload, state, executions, attempts_used, enqueued_at, finished_at,
    created_at, failure_kind, error_type, dispatch_id, tags)
SELECT gen_random_uuid(), 'old.type', 'old', '{{"n": 1}}', state, 2, 1, ended, ended, ended,
    CASE WHEN state = 'Failed' THEN 'error' END, CASE WHEN state = 'Failed' THEN 'ValueError' END, gen_random_uuid(),
    CASE WHEN n % 7 = 0 THEN ARRAY['tag'] ELSE ARRAY[]::text[] END
FROM (
    SELECT n, now() - interval '40 days' - random() * interval '1 day' AS ended,
        (ARRAY['Succeeded', 'Succeeded', 'Failed', 'Cancelled'])[n % 4 + 1] AS state
    FROM generate_series(1, {many}) AS n
) AS made
"""
ATTEMPTS = """
INSERT INTO turno.job_attempts (job_id, ordinal, attempt, counted, dispatch_id, outcome, started_at, ended_at)
SELECT id, o, 1, true, gen_random_uuid(), 'Succeeded', finished_at, finished_at
FROM turno.jobs, generate_series(1, 2) AS o WHERE type = 'old.type'
"""
CHANGES = """
INSERT INTO turno.job_state_changes (job_id, from_state, to_state, at, reason)
SELECT id, c.before, c.after, finished_at, 'x' FROM turno.jobs, (VALUES
    (NULL, 'Enqueued'), ('Enqueued', 'Processing'), ('Processing', 'Enqueued'), ('Enqueued', 'Processing'),
    ('Processing', 'Succeeded')
) AS c(before, after) WHERE type = 'old.type'
"""
LOGS = """
INSERT INTO turno.job_logs (job_id, execution, number, message)
SELECT id, 1, n, repeat('a line ', 10) FROM turno.jobs, generate_series(1, 3) AS n WHERE type = 'old.type'
"""
LETTERS = """
INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, fingerprint, attempts, created_at, resolved_at,
    resolved_how, stack)
SELECT gen_random_uuid(), id, type, queue, 'error', 'f', 2, finished_at, finished_at, 'discarded', repeat('at ', 500)
FROM turno.jobs WHERE type = 'old.type' AND state = 'Failed'
"""
# Chains across states and ages: whoever deletes one has rows in common with who deletes the next.
PAIRS = """
SELECT id AS child, lead(id, 7) OVER (ORDER BY id) AS parent FROM turno.jobs WHERE type = 'old.type'
"""
DEPENDENCIES = f"""
INSERT INTO turno.job_dependencies (child_id, parent_id)
SELECT child, parent FROM ({PAIRS}) AS p WHERE parent IS NOT NULL
"""
MESSAGES = """
INSERT INTO turno.outbox_messages (job_id, kind, queue)
SELECT id, 'dead_letter', 'old' FROM turno.jobs WHERE type = 'old.type' AND state = 'Failed' ORDER BY id LIMIT 50
"""
TABLES = (
    "jobs", "job_attempts", "job_state_changes", "job_logs", "dead_letters", "job_dependencies", "outbox_messages",
)  # fmt: skip


def make(many: int) -> None:
    """`many` jobs that ended more than 40 days ago, half of them Succeeded, and statistics of them."""
    execute("SET statement_timeout = 0")
    execute(JOBS.format(many=int(many)))
    for statement in (ATTEMPTS, CHANGES, LOGS, LETTERS, DEPENDENCIES, MESSAGES):
        execute(statement)
    execute(f"ANALYZE {', '.join(f'turno.{table}' for table in TABLES)}")
    execute("RESET statement_timeout")
