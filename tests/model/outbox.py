"""The way to the broker and back: outbox, relays, broker, consumer, and what was lost on it. Claims are one step here.

A row of the outbox is (token, relay that has leased it). The broker has tokens that are `ready`, the consumer some that
it has not acknowledged. The job may fail once and come again, with a new token.
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then

RELAYS = ("relay 1", "relay 2")


def _without(tokens: tuple[int, ...], token: int) -> tuple[int, ...]:
    left = list(tokens)
    left.remove(token)
    return tuple(left)


class Outbox(Model):
    """An accepted job is announced until somebody starts it, whoever dies between."""

    in_one_transaction = True  # the message is written with its job
    deletes_after_confirm = True
    lease_ends = True
    claim_tests_token = True
    fence_is_the_rows = True  # the owner's fence is the token that the claim answered, and not the message's
    acknowledges_after_claim = True
    claim_waits = True  # for a row that somebody has locked; else it is passed over
    announces_with_its_token = True  # what is announced again
    reannounces = False
    losses = 0
    duplicates = 0
    freezes = 0
    locks = 0
    retries = 1

    def begin(self) -> State:
        job = {"state": "new", "token": 0, "runs with": None, "fence": 0, "locked": False, "starts": ()}
        way = {"outbox": (), "ready": (), "unacked": (), "in the caller's hand": False, "again": 0}
        relays = dict.fromkeys(RELAYS, ("", 0))
        names = ("losses", "duplicates", "crashes", "freezes", "locks", "retries")
        return {**job, **way, **relays, **{name: getattr(self, name) for name in names}}

    def steps(self, now: State) -> Iterator[Step]:
        if now["state"] == "new":
            after = then(now, state="Enqueued", token=1)
            after |= {"outbox": ((1, ""),)} if self.in_one_transaction else {"in the caller's hand": True}
            yield Step("outbox.dispatch", "enqueue: the job and what goes with it; COMMIT", after)
        if now["in the caller's hand"]:
            after = then(now, **{"in the caller's hand": False})
            yield Step("", "the caller is killed before it publishes", after, fault=True)
            yield Step("", "the caller publishes", then(after, ready=(1,)))
        for relay in RELAYS:
            yield from self._relay(now, relay)
        yield from self._broker(now)
        yield from self._consume(now)
        yield from self._run(now)
        yield from self._reannounce(now)

    def _relay(self, now: State, relay: str) -> Iterator[Step]:
        at, token = now[relay]
        idle = {relay: ("", 0)}
        returned = tuple((t, "" if who == relay and self.lease_ends else who) for t, who in now["outbox"])
        if at == "":
            for token, who in now["outbox"]:
                if not who:
                    rows = tuple((t, relay if t == token else w) for t, w in now["outbox"])
                    if not self.deletes_after_confirm:
                        rows = tuple(row for row in rows if row[0] != token)
                    after = then(now, outbox=rows, **{relay: ("has it", token)})
                    yield Step("outbox.LEASE", f"{relay} leases the message of token {token}; COMMIT", after)
            return
        if now["crashes"]:
            after = then(now, crashes=now["crashes"] - 1, outbox=returned, **idle)
            yield Step("", f"{relay} is killed; its lease ends", after, fault=True)
        if at == "has it":
            after = then(now, ready=tuple(sorted([*now["ready"], token])), **{relay: ("sent", token)})
            yield Step("workers.relay.Relay", f"{relay} publishes token {token}, which is confirmed", after)
            if now["freezes"]:
                after = then(now, freezes=0, outbox=returned)
                yield Step("", f"{relay} is frozen until its lease has ended", after, fault=True)
        else:
            rows = tuple(row for row in now["outbox"] if row != (token, relay))
            yield Step("outbox.CONFIRM", f"{relay} deletes its row of token {token}", then(now, outbox=rows, **idle))

    def _broker(self, now: State) -> Iterator[Step]:
        for token in sorted(set(now["ready"])):
            rest = _without(now["ready"], token)
            if now["losses"]:
                after = then(now, losses=0, ready=rest)
                yield Step("", f"the broker loses the message of token {token}", after, fault=True)
            if now["duplicates"]:
                after = then(now, duplicates=0, ready=tuple(sorted([*now["ready"], token])))
                yield Step("", f"the broker has the message of token {token} twice", after, fault=True)
            after = then(now, ready=rest, unacked=tuple(sorted([*now["unacked"], token])))
            yield Step("", f"the consumer receives token {token}", after)
        if now["crashes"] and now["unacked"]:
            after = then(now, crashes=now["crashes"] - 1, unacked=())
            if self.acknowledges_after_claim:
                after["ready"] = tuple(sorted([*now["ready"], *now["unacked"]]))
            yield Step("", "the consumer is killed, what it had not acknowledged returns", after, fault=True)

    def _consume(self, now: State) -> Iterator[Step]:
        for token in sorted(set(now["unacked"])):
            if now["locked"] and self.claim_waits:
                continue
            after = then(now, unacked=_without(now["unacked"], token))
            if now["state"] == "Enqueued" and not now["locked"] and now["token"] in (token, *self._any(now)):
                after |= {"state": "Processing", "runs with": now["token"]}
                after |= {"starts": (*now["starts"], now["token"])}
                after["fence"] = now["token"] if self.fence_is_the_rows else token
                yield Step("claim.CLAIM_BY_ID", f"claim by token {token}: started; acknowledged", after)
            else:
                why = "its row is locked and passed over" if now["locked"] else "it names the job no more"
                yield Step("claim.CLAIM_BY_ID", f"claim by token {token}: {why}; acknowledged", after)
        if now["locks"] and now["state"] == "Enqueued":
            yield Step("", "somebody locks the job's row", then(now, locks=0, locked=True), fault=True)
        if now["locked"]:
            yield Step("", "and lets it go", then(now, locked=False))

    def _any(self, now: State) -> tuple[int, ...]:
        return () if self.claim_tests_token else (now["token"],)

    def _run(self, now: State) -> Iterator[Step]:
        if now["state"] != "Processing" or now["runs with"] is None:
            return
        after = then(now, **{"runs with": None})
        if now["fence"] != now["token"]:
            yield Step("finish.FINISH", "its end is of another token, nothing is written", after)
            return
        yield Step("finish.FINISH", "it succeeds", then(after, state="over"))
        if now["retries"]:
            token = now["token"] + 1
            after |= {"retries": 0, "state": "Enqueued", "token": token, "outbox": (*now["outbox"], (token, ""))}
            yield Step("outbox.dispatch", f"it fails and is Enqueued with token {token} and its message", after)

    def _reannounce(self, now: State) -> Iterator[Step]:
        token = now["token"]
        known = token in now["ready"] or token in now["unacked"] or any(t == token for t, _who in now["outbox"])
        if self.reannounces and now["state"] == "Enqueued" and not known and now["again"] < 2:
            again = token if self.announces_with_its_token else 9
            after = then(now, outbox=(*now["outbox"], (again, "")), again=now["again"] + 1)
            yield Step("reannounce.OLDEST", f"reconciliation: a new message, of token {again}", after)

    def broken(self, now: State) -> str | None:
        if len(now["starts"]) != len(set(now["starts"])):
            return f"two executions live side by side: {now['starts']} were started"
        return None

    def stuck(self, now: State) -> str | None:
        return (
            None if now["state"] == "over" else f"a job waits for ever: it is {now['state']} with token {now['token']}"
        )
