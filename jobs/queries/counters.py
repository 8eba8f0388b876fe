"""What is counted over the whole life of the database."""

from jobs.metrics import RETENTION
from jobs.models import Counter


def counter(name: str) -> int:
    """The count of this name; 0 where nothing was ever counted."""
    return Counter.objects.values_list("value", flat=True).filter(name=name).first() or 0


def retained() -> dict[str, int]:
    """How many rows retention has deleted or folded since the database was made, by rule; those that did nothing are
    missing."""
    rows = Counter.objects.filter(name__startswith=RETENTION).order_by("name").values_list("name", "value")
    return {name.removeprefix(RETENTION): value for name, value in rows}
