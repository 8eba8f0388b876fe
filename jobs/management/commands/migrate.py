"""`manage.py migrate`: Django's own, safe to start in several places at once and behind a busy database.

One instance migrates, under a session advisory lock on the connection that migrates; the others poll for it. A
waiting `pg_advisory_lock` would be a transaction that waits, for which CREATE INDEX CONCURRENTLY waits in its turn:
a deadlock between two instances of the same product.
"""

import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from django.core.management.base import CommandError, OutputWrapper
from django.core.management.commands import migrate
from django.db import DatabaseError, InterfaceError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import DataError, NotSupportedError, OperationalError, ProgrammingError
from psycopg import errors

from jobs import pooler
from jobs.durations import parse_duration
from jobs.management.first_user import MADE, make_first_user
from jobs.speech import _

ADVISORY_LOCK = int.from_bytes(b"turno")
POLL_INTERVAL = 1.0  # seconds
# What holds for the run and is put back at its end. The search_path: Django's reverse migrations drop indexes without
# naming their schema; and its own tables belong in `public`, also for a role that is called like our schema.
# A killed instance that waits for a table must not keep the advisory lock: the server looks for its client.
SESSION = {
    "search_path": "public, turno",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "client_connection_check_interval": "1s",
}


class Command(migrate.Command):
    """Raises CommandError with one sentence where the database is away, too old, busy or not ours to change."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Django's arguments, on the alias `direct`, and ours."""
        super().add_arguments(parser)
        parser.set_defaults(database="direct")
        parser.add_argument(
            "--wait", type=_seconds, default=0.0, metavar="SECONDS", help=_("Keep trying to connect for this long.")
        )
        parser.add_argument(
            "--lock-timeout",
            type=_seconds,
            default=10.0,
            metavar="SECONDS",
            help=_("Give up when a table stays locked for this long (10); nothing of that migration is applied."),
        )
        parser.add_argument(
            "--first-user",
            action="store_true",
            help=_("Make the administrator admin, with the password of DJANGO_SUPERUSER_PASSWORD, where nobody is."),
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Connect, wait for the lock, migrate, put the session back."""
        if options.get("stdout"):
            self.stdout = OutputWrapper(options["stdout"])
        self.verbosity = options["verbosity"]
        connection = connections[options["database"]]
        self._connect(connection, options["wait"])
        reads_only = options["plan"] or options["check_unapplied"]
        if not reads_only and _is_lent(connection):
            message = _("A PgBouncer stands before the database: name a connection past it in database.direct_url.")
            raise CommandError(message)
        settings = {**SESSION, "lock_timeout": f"{options['lock_timeout'] * 1000:.0f}"}
        with _explained(connection), self._lock(connection, held=not reads_only), _session(connection, settings):
            done = super().execute(*args, **options)
            if options["first_user"] and not reads_only and make_first_user(options["database"]):
                self.stdout.write(MADE)
            return done

    def _connect(self, connection: BaseDatabaseWrapper, wait: float) -> None:
        deadline, told = time.monotonic() + wait, False
        while True:
            try:
                connection.ensure_connection()
            except NotSupportedError:
                found = ".".join(map(str, connection.get_database_version()))
                needed = ".".join(map(str, connection.features.minimum_database_version or ()))
                connection.close()
                message = _("PostgreSQL %(needed)s or newer is needed; this server is version %(found)s.")
                raise CommandError(message % {"needed": needed, "found": found}) from None
            except OperationalError as error:
                reason = _("The database does not answer: %(reason)s") % {"reason": _one_line(error)}
                if time.monotonic() >= deadline:
                    raise CommandError(reason) from error
                if not told:
                    self._say(reason + " " + _("Trying again for %(seconds)g s.") % {"seconds": wait})
                told = True
                time.sleep(min(POLL_INTERVAL, max(0.05, deadline - time.monotonic())))
            else:
                return

    @contextmanager
    def _lock(self, connection: BaseDatabaseWrapper, *, held: bool) -> Iterator[None]:
        if not held:
            yield
            return
        waits = False
        while not _scalar(connection, "SELECT pg_try_advisory_lock(%s)", ADVISORY_LOCK):
            if not waits:
                self._say(waiting())
            waits = True
            time.sleep(POLL_INTERVAL)
        try:
            yield
        finally:
            _put_back(connection, "SELECT pg_advisory_unlock(%s)", [(ADVISORY_LOCK,)])

    def _say(self, text: str) -> None:
        if self.verbosity:
            self.stdout.write(text)
            self.stdout.flush()


def _is_lent(connection: BaseDatabaseWrapper) -> bool:
    """Whether a lock or a setting of this session would stay with whoever gets it next. A pooler that somebody named as
    the direct way is believed to keep sessions apart, unless it just showed that it does not."""
    return pooler.stands_before(connection) and (not pooler.is_named() or pooler.lends_sessions(connection))


def waiting() -> str:
    """What an instance says, once, while another one migrates."""
    return _("Another instance is migrating this database; waiting for its end.")


@contextmanager
def _session(connection: BaseDatabaseWrapper, settings: dict[str, str]) -> Iterator[None]:
    before = {}
    for name, value in settings.items():
        # A parameter that this platform or version lacks is gone without.
        with suppress(DataError, ProgrammingError), transaction.atomic(using=connection.alias):
            before[name] = _scalar(connection, "SELECT current_setting(%s)", name)
            _scalar(connection, "SELECT set_config(%s, %s, false)", name, value)
    try:
        yield
    finally:
        _put_back(connection, "SELECT set_config(%s, %s, false)", list(before.items()))


def _put_back(connection: BaseDatabaseWrapper, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Undo something of the session. One in which that fails is closed: its end undoes everything it held."""
    try:
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows)
    except (DatabaseError, InterfaceError):
        connection.close()


@contextmanager
def _explained(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """The errors that say nothing about a migration itself, as sentences."""
    session = connection.connection
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        # Django wraps the driver's error, and the one of its own first table once more.
        cause = error.__cause__ or getattr(error.__context__, "__cause__", None)
        if isinstance(cause, (errors.LockNotAvailable, errors.DeadlockDetected)):
            message = _(
                "A table that the migration changes stayed locked by somebody else; the migration is not done, and "
                "goes on where it was when the command is run again."
            )
        elif isinstance(cause, errors.InsufficientPrivilege):
            message = _("The role %(role)s may not create or change tables here: %(reason)s")
        elif connection.connection is not session or session.closed:  # Django makes a new one for a broken one
            message = _("The database went away while migrating (%(reason)s). Run the command again.")
        else:
            raise
        role = connection.settings_dict["USER"]
        raise CommandError(message % {"reason": _one_line(error), "role": role}) from error


def _scalar(connection: BaseDatabaseWrapper, sql: str, *params: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchone()[0]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
