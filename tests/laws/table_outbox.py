"""The guards of the way to the broker: the fourth law, and what of the sixth is its own."""

from functools import partial

from tests.laws import scenarios_outbox as outbox
from tests.laws.law import Law, sql

WAITS, SKIPS = "FOR NO KEY UPDATE OF j", "FOR NO KEY UPDATE OF j SKIP LOCKED"
OUTBOX = [
    *(
        Law(
            4,
            f"the message in the transaction of its job ({way})",
            "an accepted job waits for ever",
            (sql(where, ("WHERE %(broker)s::bool AND state = 'Enqueued'", "WHERE FALSE")),),
            partial(outbox.killed_after_its_commit, way),
        )
        for way, where in outbox.WAYS.items()
    ),
    Law(
        4,
        "a message is deleted when the broker has confirmed it",
        "a job waits for ever",
        (
            sql(
                "outbox.LEASE",
                (
                    "UPDATE turno.outbox_messages\n    SET lock_id = %(lock_id)s::uuid, locked_until = now() + "
                    "%(lease)s::float8 * interval '1 second'\n",
                    "DELETE FROM turno.outbox_messages\n",
                ),
            ),
        ),
        outbox.relay_killed_before_it_publishes,
    ),
    Law(
        4,
        "a lease ends by itself",
        "a job waits for ever",
        (sql("outbox.LEASE", ("locked_until < now()", "FALSE")),),
        outbox.relay_killed_before_it_publishes,
    ),
    Law(
        4,
        "only what names its job no more is dropped",
        "a job waits for ever",
        (sql("outbox.LEASE", ("j.dispatch_id = o.dispatch_id AND", "j.dispatch_id <> o.dispatch_id AND")),),
        outbox.published_once,
    ),
    Law(
        4,
        "a message is announced again with the token of its job",
        "a job waits for ever",
        (
            sql(
                "reannounce.OLDEST",
                (
                    "SELECT id, dispatch_id, queue, priority FROM again",
                    "SELECT id, gen_random_uuid(), queue, priority FROM again",
                ),
            ),
        ),
        outbox.lost_by_the_broker,
    ),
    *(
        Law(6, f"a {verb} waits and does not skip", "waits for ever", (sql(where, (WAITS, SKIPS)),), scenario)
        for verb, where, scenario in (
            ("defer", "park.DEFER", partial(outbox.put_aside_while_somebody_looks, "defer")),
            ("park_unknown", "unknown.PARK_UNKNOWN", partial(outbox.put_aside_while_somebody_looks, "park_unknown")),
            ("reannounce", "reannounce.NAMED", outbox.given_up_while_somebody_looks),
        )
    ),
]
