"""What is counted over the whole life of the database."""

from jobs.models import Counter


def counter(name: str) -> int:
    """The count of this name; 0 where nothing was ever counted."""
    return Counter.objects.values_list("value", flat=True).filter(name=name).first() or 0
