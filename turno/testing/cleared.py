"""Turno's tables after a test whose rows are committed: they are in a schema of theirs, which Django's flush leaves."""

from django.apps import apps
from django.core import mail
from django.db import transaction


def clear_jobs(*, using: str = "default") -> None:
    """Remove all that Turno has stored: for a TransactionTestCase's `setUp`, or a fixture beside `transactional_db`.

    A test in a transaction needs none of it. Raises RuntimeError outside of Django's test environment.
    """
    if not hasattr(mail, "outbox"):  # (what Django puts there for the time of its tests)
        raise RuntimeError("clear_jobs() removes every job; it is for Django's test environment alone")
    with transaction.atomic(using=using):  # (rows that refer to others are looked at when it commits)
        for model in apps.get_app_config("jobs").get_models():
            model._base_manager.using(using)._raw_delete(using)
