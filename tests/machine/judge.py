"""Between two looks one transaction was committed at most, and whose it was is known: whatever it changed is judged.

The promises are those of `protocol.md`: who may change which job, under which fence, with which token.
"""

from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

from jobs.states import FINAL, State
from tests.laws.guards import keep
from tests.machine.acts import OWNERS, Act, E, P
from tests.machine.world import Row, Step, World, steps

FENCED = ("settle", "release")


class Judge:
    """Remembers every token that there ever was, and what each execution was begun and ended as."""

    def __init__(self) -> None:
        self.tokens: dict[UUID, set[UUID]] = defaultdict(set)  # by job
        self.started: set[UUID] = set()  # tokens of executions
        self.ended: dict[UUID, tuple[UUID, str]] = {}  # by token: who had it, what the job became

    def commit(self, act: Act, before: World, after: World) -> None:
        """Whatever is different `after` was done by `act`. Raises BrokenPromise."""
        made = steps(before, after)
        by_job: dict[UUID, list[Step]] = defaultdict(list)
        for step in made:
            by_job[step.job].append(step)
        for id_ in sorted(before.jobs.keys() | after.jobs.keys()):
            old, new = before.jobs.get(id_), after.jobs.get(id_)
            if new is None:
                self._gone(act, old)
            else:
                self._job(act, (old, new), by_job[id_], (before, after))
        self._owners_can_write(act, made, before)
        self._slots(act, before, after)
        self._unique(after.jobs.values())
        act.steps += made

    def _gone(self, act: Act, old: Row | None) -> None:
        assert old is not None
        keep(act.power.deletes and old["state"] in FINAL, f"a job {old['state']} is gone by {act.verb}")
        act.gone.add(old["id"])

    def _job(self, act: Act, row: tuple[Row | None, Row], path: list[Step], worlds: tuple[World, World]) -> None:
        (old, new), (before, after) = row, worlds
        was = old["state"] if old else None
        for step in path:
            edge = (step.was, step.to, step.reason)
            keep(step.was == was, f"the time line goes from {was} to {step.was} by {act.verb}")
            own = edge in act.power.own and act.is_told_of(step, before)
            keep(own or edge in act.power.side, f"{act.verb} made a job go {edge} that it was not told of")
            if step.to == P:
                self._begun(act, step, before)
            if step.was == P:
                self._ended(act, step, after)
            was = step.to
        keep(new["state"] == was, f"a job is {new['state']}, and its time line ends {was} by {act.verb}")
        if path and new["state"] == E:
            token = new["dispatch_id"]
            keep(token not in self.tokens[new["id"]], f"a job is enqueued with a token of old by {act.verb}")
        if not path and old is not None:
            self._stays(act, old, new)
        if new["dispatch_id"] is not None:
            self.tokens[new["id"]].add(new["dispatch_id"])
        executions = len([row for row in after.history[new["id"]] if row["to_state"] == P])
        keep(new["executions"] == executions, f"{executions} executions were begun, {new['executions']} are counted")
        ends = len([row for row in after.history[new["id"]] if row["from_state"] == P])
        keep(len(after.attempts[new["id"]]) == ends, f"{ends} executions ended, and not each is in the attempts")

    def _begun(self, act: Act, step: Step, before: World) -> None:
        old, new = step.old, step.new
        assert old is not None
        keep(
            (new["worker_id"], new["claim_id"]) == (act.worker, act.claim_id),
            "a job was claimed for somebody who did not ask",
        )
        keep(new["dispatch_id"] == old["dispatch_id"], "a claim changed a token")
        keep(new["dispatch_id"] not in self.started, "two executions live side by side")
        keep(not act.named or (step.job, new["dispatch_id"]) in act.named, "a claim by id took a job of another token")
        keep(not before.held_back(old, act.begun), "what was paused before a claim began was started by it")
        self.started.add(new["dispatch_id"])

    def _ended(self, act: Act, step: Step, after: World) -> None:
        old = step.old
        assert old is not None
        token, owner = old["dispatch_id"], old["worker_id"]
        if act.verb in FENCED:
            fence = (step.job, token) in act.named and owner == act.worker
            keep(fence, "a late owner's end was written")
        attempt = after.attempts[step.job].get(old["executions"])
        keep(
            attempt is not None and (attempt["dispatch_id"], attempt["worker_id"]) == (token, owner),
            "an execution ended without its attempt",
        )
        if act.became and old["cancel_requested_at"] is not None and act.became[token] != State.SUCCEEDED:
            keep(step.to == State.CANCELLED, "a cancelled job goes on")
        elif act.became:
            keep(step.to == act.became[token], f"an end said {act.became[token]}, and the job is {step.to}")
        self.ended[token] = (owner, step.to)

    def _stays(self, act: Act, old: Row, new: Row) -> None:
        """What changed of a row whose state did not."""
        changed = {name for name, value in new.items() if value != old[name]}
        keep(changed <= act.power.touches, f"{act.verb} changed {sorted(changed - act.power.touches)} of a job")
        if changed & OWNERS:
            fence = (new["id"], old["dispatch_id"]) in act.named and old["worker_id"] == act.worker
            keep(fence and old["state"] == P, f"{act.verb} of a late owner was written")
        if changed & {"priority", "cancel_requested_at"}:
            keep(new["id"] in act.ids, f"{act.verb} changed a job that it was not told of")

    def _owners_can_write(self, act: Act, made: Iterable[Step], before: World) -> None:
        """Who had the fence when the end was committed has written it."""
        if act.verb not in FENCED or not act.named:
            return
        ended = {step.job for step in made if step.was == P}
        for id_, token in act.named:
            job = before.jobs.get(id_)
            if job is not None and (job["state"], job["dispatch_id"], job["worker_id"]) == (P, token, act.worker):
                keep(id_ in ended, "the owner of a job could not write its end")

    def _slots(self, act: Act, before: World, after: World) -> None:
        for slot in after.slots:
            job = after.jobs[slot["job_id"]]
            mine = job["dispatch_id"] == slot["dispatch_id"] and job["state"] in (E, P)
            keep(mine, f"a slot of {slot['kind']} {slot['value']} is nobody's by {act.verb}")
        held = {(slot["kind"], slot["value"], slot["job_id"]) for slot in after.slots}
        for job in after.of_state(P):
            key = job["concurrency_key"]
            keep(key is None or ("key", key, job["id"]) in held, "a job runs without a slot of its key")
        for kind, value in sorted({(slot["kind"], slot["value"]) for slot in after.slots}):
            holders = [after.jobs[slot["job_id"]] for slot in after.holders(kind, value)]
            if kind == "key":
                most = max(job["concurrency_limit"] for job in holders)
                keep(len(holders) <= most, f"{len(holders)} jobs of the key {value} run, {most} may")
            elif value in after.limits and act.verb not in ("set_limits", "sweep"):
                most = max(after.limits[value], len(before.holders(kind, value)))
                keep(len(holders) <= most, f"{len(holders)} jobs of the type {value} run, {most} may")

    @staticmethod
    def _unique(jobs: Iterable[Row]) -> None:
        active = [job["unique_key"] for job in jobs if job["unique_key"] is not None and job["state"] not in FINAL]
        keep(len(active) == len(set(active)), "two active jobs have one unique key")
