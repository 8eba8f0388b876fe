"""Behind a PgBouncer each transaction has its limits, and leaves nothing in a session that others get next."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connections, transaction

import tests.kit.handlers  # noqa: F401
from jobs import transitions
from jobs.bulk.targets import ONE_VIEW
from jobs.conf import overridden
from jobs.enqueue import enqueue
from jobs.models import Job
from jobs.queries.bounded import TooSlow, within
from tests.bouncer.conftest import ALIASES, reached_by

pytestmark = pytest.mark.crash
LIMITS = {"statement_timeout": "30s", "idle_in_transaction_session_timeout": "15s", "jit": "off"}


def ask(alias, sql, *params):
    with connections[alias].cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchone()[0]


def settings(alias):
    return {name: ask(alias, "SELECT current_setting(%s)", name) for name in LIMITS}


@pytest.mark.parametrize("alias", ALIASES)
def test_a_transaction_has_its_limits_and_leaves_none_of_them_in_the_session(through, alias):
    before = settings(alias)
    assert before != LIMITS
    for _ in range(2):
        with transaction.atomic(using=alias):
            assert settings(alias) == LIMITS
            with transaction.atomic(using=alias):
                assert settings(alias) == LIMITS
        assert settings(alias) == before
    with pytest.raises(ZeroDivisionError), transaction.atomic(using=alias):
        raise ZeroDivisionError
    assert settings(alias) == before


def test_a_statement_has_no_more_than_its_time(through):
    with pytest.raises(TooSlow), within(0.05, "bounced"):
        ask("bounced", "SELECT 1 FROM pg_sleep(60)")
    assert ask("bounced", "SELECT current_setting('statement_timeout')") == "0"
    assert ask("bounced", "SELECT 1") == 1


def test_a_transaction_can_still_choose_how_much_it_sees(through):
    with transaction.atomic(using="bounced"), connections["bounced"].cursor() as cursor:
        cursor.execute(ONE_VIEW)
        assert ask("bounced", "SELECT current_setting('transaction_isolation')") == "repeatable read"
        assert settings("bounced") == LIMITS
    assert ask("bounced", "SELECT current_setting('transaction_isolation')") == "read committed"


@pytest.mark.parametrize("alias", ALIASES)
def test_statements_are_not_prepared_however_often_they_are_said(through, alias):
    for n in range(12):
        assert ask(alias, "SELECT %s::int", n) == n
    # One session is in use at a time, and the last one given back comes first.
    assert ask(alias, "SELECT count(*) FROM pg_prepared_statements") == 0


def test_an_enqueue_is_not_prepared_either(through):
    for _ in range(12):
        enqueue("probe.async", {"key": "k"}, using="bounced")
    assert Job.objects.count() == 12
    assert ask("bounced", "SELECT count(*) FROM pg_prepared_statements") == 0


def test_an_enqueue_of_one_job_has_the_limits_of_a_transaction(through, monkeypatch):
    monkeypatch.setitem(connections["bounced"].settings_dict["OPTIONS"], "each_transaction", (50, 15_000))
    with transaction.atomic(), connections["default"].cursor() as cursor:
        cursor.execute("LOCK TABLE turno.jobs IN SHARE MODE")
        with pytest.raises(OperationalError, match="statement timeout"):
            enqueue("probe.async", {"key": "k"}, using="bounced")
    assert not Job.objects.exists()


def test_a_refused_statement_leaves_the_next_transaction_and_its_limits_alone(through):
    with pytest.raises(Exception, match="division by zero"), transaction.atomic(using="bounced"):
        ask("bounced", "SELECT 1 / 0")
    with transaction.atomic(using="bounced"):
        assert settings("bounced") == LIMITS


def test_a_transaction_that_was_cut_off_at_its_beginning_is_an_error_and_the_connection_is_replaced(through):
    assert ask("bounced", "SELECT 1") == 1
    through.kill()
    with pytest.raises(OperationalError), transaction.atomic(using="bounced"):
        ask("bounced", "SELECT 1")
    through.start()
    made = enqueue("probe.async", {"key": "k"}, using="bounced")
    assert Job.objects.filter(pk=made.id).exists()
    transitions.cancel([made.id], using="bounced_engine")
    assert Job.objects.get(pk=made.id).state == "Cancelled"


@pytest.mark.parametrize("named", [None, "postgresql://server/d"], ids=["not named", "named as the direct way"])
def test_migrations_refuse_to_leave_a_lock_in_a_session_that_others_get_next(through, named):
    with (
        overridden(database={"direct_url": named}),
        pytest.raises(CommandError, match=r"database\.direct_url"),
    ):
        call_command("migrate", database="bounced", verbosity=0)


def test_migrations_go_through_a_bouncer_that_keeps_sessions_apart(bouncer_of, clean_tables, django_db_blocker):
    bouncer = bouncer_of(pool_mode="session")
    with reached_by(bouncer, django_db_blocker), overridden(database={"direct_url": bouncer.url}):
        call_command("migrate", database="bounced", verbosity=0)
