"""The rows of the catalogue about one job and who owns it."""

from typing import Any

from tests.model.case import Case, Mutant
from tests.model.ownership import Ownership

BESIDE = "two executions live side by side"
PROCESSES = "tests/laws/test_processes.py"
ONE: dict[str, Any] = {"one_worker": True, "freezes": 1}  # the hardest: its id tells two executions apart no more
OWNERSHIP: list[Case] = [
    Case(Ownership, "a crash", {"crashes": 1}),
    Case(Ownership, "a frozen worker", {"freezes": 1}),
    Case(Ownership, "two slots of one worker, frozen", ONE),
    Case(Ownership, "a message that comes twice", {"duplicates": 1}),
    Case(Ownership, "an answer that is lost", {"lost_answers": 1}),
    Case(Ownership, "a cancel", {"cancels": 1}),
    Case(Ownership, "a worker that is told to stop", {"stops": 1}),
    Case(Ownership, "a thread that can't be killed, frozen", {"killable": False, "freezes": 1}),
    Case(Ownership, "the fence without its worker", {"fence_tests_worker": False, **ONE}),
    Case(Ownership, "the fence without its state", {"fence_tests_state": False, "freezes": 1}),
]
OWNERSHIP_LONG: list[Case] = [
    Case(Ownership, "a crash and a frozen worker", {"crashes": 1, "freezes": 1}),
    Case(Ownership, "a frozen worker and an answer that is lost", {"freezes": 1, "lost_answers": 1}),
    Case(Ownership, "the claim without its token test", {"claim_tests_token": False, "duplicates": 1}),
]
OWNERSHIP_LIMIT = Mutant(Ownership, "a whole machine is frozen and thaws", {"machines": 1}, (), BESIDE)
OWNERSHIP_MUTANTS: list[Mutant] = [
    Mutant(Ownership, "the fence without its token", ONE, ("fence_tests_token",), "a late owner's end was written",
           ("the end's token, or one end a token", "the release's token", "the note's token")),
    Mutant(Ownership, "the fence without worker and state", {"freezes": 1},
           ("fence_tests_worker", "fence_tests_state"), "a job went from",
           ("the note's worker, or its state, or no token without an owner",
            "the end's worker, or a new token, or one end a token")),
    Mutant(Ownership, "the token is kept", ONE, ("new_token",), "a late owner's end was written",
           tuple(f"a new token at each entry into the queue ({way})"
                 for way in ("lost", "released", "retried", "run now", "requeued"))),
    Mutant(Ownership, "the claim without its state test", {"duplicates": 1}, ("claim_tests_state",), "a job went from",
           ("the state test in the claim",)),
    Mutant(Ownership, "no deadline", {}, ("deadline",), BESIDE,
           (f"{PROCESSES}::test_a_worker_that_counts_no_deadline_runs_jobs_beside_its_successors",)),
    Mutant(Ownership, "a deadline that counts from the answer", {}, ("deadline_from_send",), BESIDE,
           ("the deadline of a claim, from before it was sent", "the deadline of a renewal, from before it was sent")),
    Mutant(Ownership, "no grace", {"grace": 0}, (), BESIDE, ("the grace",)),
    Mutant(Ownership, "the dead are renewed", {}, ("drops_the_dead",), "Processing for ever",
           ("no renewal past the deadline",)),
    Mutant(Ownership, "a thread without a supervisor", {"killable": False}, ("supervisor",), BESIDE,
           (f"{PROCESSES}::test_a_worker_that_counts_no_deadline_runs_jobs_beside_its_successors",)),
    Mutant(Ownership, "given back before it is dead", {"stops": 1}, ("kills_before_release",), BESIDE,
           (f"{PROCESSES}::"
            "test_a_worker_that_gives_its_jobs_back_before_their_handlers_are_dead_runs_them_beside_others",)),
    Mutant(Ownership, "taken back before it is dead", {"crashes": 1}, ("kills_before_take_back",), BESIDE,
           (f"{PROCESSES}::test_a_take_back_without_a_kill_runs_a_job_beside_what_its_last_execution_left",)),
    Mutant(Ownership, "the cancel is not tested in the end", {"cancels": 1}, ("end_tests_cancel",),
           "a cancelled job goes on", ("cancel tested inside the settle",)),
    Mutant(Ownership, "a requeue keeps the cancel", {"cancels": 1, "requeues": 1}, ("requeue_clears_cancel",),
           "a cancelled job goes on", ("a requeue clears the cancel request",)),
    Mutant(Ownership, "its own end is not known", {"lost_answers": 1}, ("own_end_is_known",), "taken for lost",
           ("an end that was written is known again",)),
    Mutant(Ownership, "no strays are given back", {"lost_answers": 1}, ("strays",), "whose worker is well",
           ("a claim whose answer was lost is given back",)),
    Mutant(Ownership, "strays of a claim in flight", {}, ("strays_heed_flight",), BESIDE,
           ("a claim in flight is no stray",)),
]  # fmt: skip
