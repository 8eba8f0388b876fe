"""The guards of answers that are lost, of renewals beside others' locks, and of what is given and taken back."""

from tests.laws import scenarios_ends as ends
from tests.laws.law import Law, sql

TWO = "two executions live side by side"

ENDS = [
    Law(
        2,
        "an end that was written is known again",
        "taken for lost",
        (sql("settle.OWN_END", ("a.outcome <> 'WorkerLost' OR a.duration IS NOT NULL", "FALSE")),),
        ends.ended_twice,
    ),
    Law(
        1,
        "a requeue clears the cancel request",
        "cancelled by the request of before",
        (sql("people.REQUEUE", ("cancel_requested_at = NULL, ", "")),),
        ends.requeued_after_a_cancel,
    ),
    Law(
        3,
        "a claim whose answer was lost is given back",
        "a loss is charged to it",
        (sql("renew.MINE", ("state = 'Processing'", "FALSE")),),
        ends.claimed_without_an_answer,
    ),
    Law(
        2,
        "the begin's token, or its answer with the row's own",
        TWO,
        (
            sql("begin.BEGIN", ("j.dispatch_id = i.dispatch_id", "TRUE")),
            sql(
                "begin.BEGIN",
                ("SELECT j.id\n", "SELECT j.id, i.dispatch_id AS said\n"),
                ("RETURNING j.dispatch_id", "RETURNING mine.said"),
            ),
        ),
        ends.begun_late,
    ),
    Law(
        3,
        "only the dead worker's",
        TWO,
        (sql("take_back.TAKE_BACK", ("%(worker_id)s::uuid", "j.worker_id")),),
        ends.of_another_worker,
    ),
    Law(
        3,
        "a heartbeat waits for nobody",
        "runs out because of another's row",
        (sql("renew.RENEW", ("OF j SKIP LOCKED", "OF j")),),
        ends.renewed_while_somebody_looks,
    ),
    Law(
        3,
        "what a heartbeat passed over is read",
        "a live owner was told that it had lost its job",
        (sql("renew.STILL_MINE", ("COALESCE(j.state, '') = 'Processing'", "FALSE")),),
        ends.renewed_while_somebody_looks,
    ),
]
