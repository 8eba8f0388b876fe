"""What carries the work to a worker: one interface, whatever is behind it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from workers.leases import Held


class Transport(ABC):
    """Brings claimed jobs for free slots. Never brings more than was offered."""

    @abstractmethod
    async def take(self, offer: Sequence[tuple[str, int]]) -> list[Held]:
        """Jobs claimed for the free slots (queue, slot) of `offer`, maybe none. Raises a database error when away."""
