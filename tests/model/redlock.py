"""Locks of jobs on three servers, and the claim after them: the locks save work, the claim decides.

Of one job there are two messages, each with the token that it names: twice the same, or an old one and the present one.
A server holds the token of whom it has named, or nothing. Two workers, a message each. Servers may go away, forget all,
or let a lock go too soon, and a worker may be frozen until its locks have passed.
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then

SERVERS = ("server 1", "server 2", "server 3")
WORKERS = ("worker 1", "worker 2")
AWAY = "away"


class Redlock(Model):
    """Acquire on a quorum, claim, run, give back."""

    quorum = 2
    tokens = ("old", "new")  # of the two messages; "new" is the job's
    claim_decides = True  # state and token are tested by the claim, whoever has the locks
    defers = True  # a job whose lock another has is put off, else its message is dropped
    goes_on_alone = True  # without a quorum of answers jobs go on unlocked
    gives_back_own = True  # only where the server still names my token
    freezes = 0
    flushes = 0
    losses = 0
    drifts = 0

    def begin(self) -> State:
        locks = dict.fromkeys(SERVERS, "")
        places = {f"{who} at": "has a message" for who in WORKERS} | {f"{who} asked": () for who in WORKERS}
        tokens = {f"{who} names": self.tokens[n] for n, who in enumerate(WORKERS)}
        faults = {"freezes": self.freezes, "flushes": self.flushes, "losses": self.losses, "drifts": self.drifts}
        job = {"state": "Enqueued", "token": "new", "late": False, "starts": (), "crashes": self.crashes, "vain": 0}
        return {**locks, **places, **tokens, **faults, **job}

    def steps(self, now: State) -> Iterator[Step]:
        for who in WORKERS:
            yield from self._acquire(now, who)
            yield from self._claim(now, who)
        yield from self._servers(now)
        if now["state"] == "put off":
            free = next((who for who in WORKERS if now[f"{who} at"] == ""), None)
            if free:
                after = then(now, state="Enqueued", token="newer")
                after |= {f"{free} at": "has a message", f"{free} names": "newer"}
                yield Step("promote.PROMOTE", f"the job comes again, to {free}, with a new token", after)

    def _acquire(self, now: State, who: str) -> Iterator[Step]:
        at, token, asked = now[f"{who} at"], now[f"{who} names"], now[f"{who} asked"]
        if at == "has a message":
            yield Step("workers.locks.redlock.Redlock.acquire", f"{who} asks", then(now, **{f"{who} at": "asks"}))
        elif at == "asks":
            for server in SERVERS[len(asked) : len(asked) + 1]:
                named = now[server]
                after = then(now, **{f"{who} asked": (*asked, named or token)})
                if not named:
                    after[server] = token
                what = f"{server} is away" if named == AWAY else f"{server} names {named or token}"
                yield Step("workers.locks.redis_nodes.Nodes.take", f"{who}: {what}", after)
            if len(asked) == len(SERVERS):
                yield from self._standing(now, who, token, asked)

    def _standing(self, now: State, who: str, token: str, asked: tuple[str, ...]) -> Iterator[Step]:
        answered = [named for named in asked if named != AWAY]
        mine, away = answered.count(token) >= self.quorum, len(answered) < self.quorum
        label = "has the lock" if mine else "too few answer" if away else "another has the lock"
        after = then(now, **{f"{who} at": "claims" if mine or (away and self.goes_on_alone) else "puts off"})
        after[f"{who} asked"] = ()
        yield Step("workers.locks.redlock.standing", f"{who}: {label}", after)

    def _claim(self, now: State, who: str) -> Iterator[Step]:
        at, token = now[f"{who} at"], now[f"{who} names"]
        if at == "claims":
            if now["crashes"]:
                after = then(now, crashes=0, **{f"{who} at": ""})
                yield Step("", f"{who} is killed before its claim, its message returns", self._passed(after, who) | {
                    f"{who} at": "has a message"}, fault=True)  # fmt: skip
            ok = now["state"] == "Enqueued" and token == now["token"]
            if not self.claim_decides:
                ok = now["state"] != "over"
            after = then(now, **{f"{who} at": "runs" if ok else "gives back"})
            if ok:
                after |= {"state": "Processing", "starts": tuple(sorted([*now["starts"], who]))}
            else:
                after["vain"] = 1
            yield Step("claim.CLAIM_BY_ID", f"{who} claims: {'started' if ok else 'nothing'}", after)
            if now["freezes"]:
                after = self._passed(then(now, freezes=0), who)
                yield Step("", f"{who} is frozen until its locks have passed", after, fault=True)
        elif at == "puts off":
            after = then(now, **{f"{who} at": ""})
            if self.defers and now["state"] == "Enqueued" and token == now["token"]:
                after["state"] = "put off"
            yield Step("park.DEFER", f"{who} puts it off" if self.defers else f"{who} drops the message", after)
        elif at == "runs":
            after = then(now, state="over", **{f"{who} at": "gives back"})
            after["starts"] = tuple(name for name in now["starts"] if name != who)
            yield Step("settle.settle", f"{who} ends it", after)
        elif at == "gives back":
            after = then(now, **{f"{who} at": ""})
            for server in SERVERS:
                if now[server] == token or (now[server] not in ("", AWAY) and not self.gives_back_own):
                    after[server] = ""
            yield Step("workers.locks.redlock.Redlock.release", f"{who} gives its locks back", after)

    def _passed(self, after: State, who: str) -> State:
        """What a worker that keeps nothing had is free after the TTL; another's of the same token is kept by him."""
        token = after[f"{who} names"]
        return after | {server: "" for server in SERVERS if after[server] == token}

    def _servers(self, now: State) -> Iterator[Step]:
        for server in SERVERS:
            if now["losses"] and now[server] != AWAY:
                yield Step("", f"{server} is away", then(now, losses=now["losses"] - 1, **{server: AWAY}), fault=True)
            if now["drifts"] and now[server] not in ("", AWAY):
                yield Step("", f"{server} lets go too soon", then(now, drifts=0, **{server: ""}), fault=True)
        if now["flushes"]:
            empty = {server: "" for server in SERVERS if now[server] != AWAY}
            yield Step("", "the servers are flushed", then(now, flushes=0, **empty), fault=True)

    def broken(self, now: State) -> str | None:
        if len(now["starts"]) > 1:
            return "two executions live side by side: the locks let both through"
        return None

    def stuck(self, now: State) -> str | None:
        return None if now["state"] == "over" else f"a job waits for ever: it is {now['state']}, nobody has its message"
