"""PostgreSQL carries the work itself: a claim is a search, `FOR NO KEY UPDATE SKIP LOCKED` by priority and age."""

import asyncio
from collections.abc import Sequence

from workers.leases import Held
from workers.ledger import ClaimLedger
from workers.transports.base import Transport


class PostgresTransport(Transport):
    """Claims through the ledger."""

    name = "postgres"
    brings_all = True

    def __init__(self, ledger: ClaimLedger) -> None:
        self._ledger = ledger

    async def take(self, offer: Sequence[tuple[str, int]]) -> list[Held]:
        return await asyncio.wrap_future(self._ledger.claim(offer))
