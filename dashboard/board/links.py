"""The doors that stand on the board. Addresses are asked for once, not for each of a thousand cells."""

from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse


@dataclass(frozen=True, slots=True)
class Links:
    """Where jobs, workers and queues are shown."""

    jobs: str
    workers: str

    def job(self, id_: UUID) -> str:
        """A job's page."""
        return f"{self.jobs}/{id_}"

    def worker(self, id_: UUID) -> str:
        """A worker's page."""
        return f"{self.workers}/{id_}"

    def queue(self, name: str) -> str:
        """What waits in a queue."""
        return f"{self.jobs}?{urlencode({'estado': 'fila', 'fila': name})}"


def links() -> Links:
    """The addresses of this house."""
    return Links(reverse("tarefas"), reverse("workers"))
