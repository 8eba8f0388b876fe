"""The guards of unknown types: a gate without a row, and a grace that runs only while somebody watches."""

from jobs.serving import WATCHED
from tests.laws import scenarios_unknown as unknown
from tests.laws.law import Law, sql

NOT_SERVED = "NOT EXISTS (SELECT FROM served AS s WHERE s.queue = u.queue AND s.type = u.type)"

UNKNOWN_TYPES = [
    Law(
        3,
        "who gives a job up looks at the workers once more",
        "though a worker has its type",
        (sql("unknown.OVER", (NOT_SERVED, "TRUE")),),
        unknown.somebody_came,
    ),
    Law(
        3,
        "a book that nobody kept counts for nothing",
        "though nobody was there to watch",
        (sql("unknown.OVER", (WATCHED, "TRUE")),),
        unknown.nobody_looked,
    ),
    Law(
        3,
        "a time in which nobody looked begins the grace anew",
        "though nobody was there to watch",
        (sql("unknown.WATCH", (f"CASE WHEN {WATCHED} THEN u.since ELSE now() END", "u.since")),),
        unknown.looked_at_in_the_morning,
    ),
    Law(
        3,
        "the book forgets a type that somebody has",
        "though its type was not missing for so long",
        (
            sql(
                "unknown.WATCH",
                ("WHERE NOT EXISTS (SELECT FROM unserved AS n", "WHERE FALSE AND EXISTS (SELECT FROM unserved AS n"),
            ),
        ),
        unknown.served_for_a_while,
    ),
    Law(
        3,
        "the job itself has waited for the grace",
        "before it had waited for so long",
        (sql("unknown.OVER", ("enqueued_at <= now() - %(since)s::float8 * interval '1 second'", "TRUE")),),
        unknown.requeued_a_moment_ago,
    ),
    Law(
        3,
        "the gate of an unknown type is asked again and again",
        "a worker has its type",
        (sql("unknown.OPEN_UNKNOWN", ("WHERE s.takes AND", "WHERE FALSE AND")),),
        unknown.parked_a_moment_too_late,
    ),
]
