"""The tests' own proxy does what its words say: a test that believes it would prove nothing otherwise."""

import threading
from uuid import uuid4

import psycopg
import pytest
from django.db import OperationalError, connections, transaction

from tests.kit.processes import eventually
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import make_job

pytestmark = [COMMITTED]
STAGE = "UPDATE turno.jobs SET stage = %s WHERE id = %s"


def connect(proxy, **options):
    return psycopg.connect(proxy.url, **options)


def stage(made):
    return rows.job(made.id)["stage"]


@pytest.fixture
def made(committed):
    return make_job()


def test_it_carries_queries_of_every_kind_and_large_answers(proxy):
    with connect(proxy, autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.execute("SELECT %s::text", ["x" * 3_000_000]).fetchone() == ("x" * 3_000_000,)
        for n in range(4):  # prepared from the third on
            assert connection.execute("SELECT %s::int", [n], prepare=True).fetchone() == (n,)
        assert proxy.connections == 1
    eventually(lambda: not proxy.connections, "the connection is over on both sides")


@pytest.mark.parametrize("prepared", [False, True])
def test_a_swallowed_commit_was_done_and_its_client_is_not_told(proxy, made, prepared):
    trap = proxy.swallow_commit("SET stage")
    with connect(proxy) as connection:
        for text in ("a", "b"):
            connection.execute(STAGE, [text, made.id], prepare=prepared)
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
    trap.wait()
    assert stage(made) == "b"


def test_a_commit_that_is_lost_on_its_way_was_not_done(proxy, made):
    trap = proxy.lose("commit", after="SET stage", side="request")
    with connect(proxy) as connection:
        connection.execute(STAGE, ["a", made.id])
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
    trap.wait()
    assert stage(made) == ""


def test_a_commit_of_another_transaction_passes_and_only_as_many_are_lost_as_were_asked(proxy, made):
    trap = proxy.swallow_commit("SET stage", times=2)
    for text in ("one", "two", "three"):
        with connect(proxy) as connection:
            connection.execute("SELECT 1")
            connection.commit()  # of a transaction that said something else
            connection.execute(STAGE, ["none", uuid4()])
            connection.commit()  # of one that found nothing
            connection.execute(STAGE, [text, made.id])
            if trap.left:
                with pytest.raises(psycopg.OperationalError):
                    connection.commit()
            else:
                connection.commit()
    assert (trap.caught, stage(made)) == (2, "three")


def test_a_statement_outside_of_transactions_can_be_lost_as_well(proxy, made):
    trap = proxy.lose("UPDATE turno.jobs")
    with connect(proxy, autocommit=True) as connection, pytest.raises(psycopg.OperationalError):
        connection.execute(STAGE, ["a", made.id])
    assert (trap.caught, stage(made)) == (1, "a")


@pytest.mark.parametrize("prepared", [False, True])
def test_a_statement_outside_of_transactions_is_its_own_commit(proxy, made, prepared):
    trap = proxy.swallow_commit("SET stage", passes=1)
    with connect(proxy, autocommit=True) as connection:
        connection.execute(STAGE, ["a", made.id], prepare=prepared)
        connection.execute(STAGE, ["none", uuid4()], prepare=prepared)  # it finds nothing
        with pytest.raises(psycopg.OperationalError):
            connection.execute(STAGE, ["b", made.id], prepare=prepared)
    assert (trap.caught, stage(made)) == (1, "b")


def test_one_that_is_lost_on_its_way_was_not_done(proxy, made):
    trap = proxy.lose("COMMIT", after="SET stage", side="request", with_rows=True)
    with connect(proxy, autocommit=True) as connection, pytest.raises(psycopg.OperationalError):
        connection.execute(STAGE, ["a", made.id])
    assert (trap.caught, stage(made)) == (1, "")


def test_the_answer_to_one_can_be_held_up(proxy, made):
    trap = proxy.hold_commit("SET stage")
    with connect(proxy, autocommit=True) as connection:
        writing = threading.Thread(target=connection.execute, args=(STAGE, ["a", made.id]))
        writing.start()
        trap.wait()
        assert (stage(made), writing.is_alive()) == ("a", True)
        trap.let_go()
        writing.join(60)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_the_engine_s_own_connection_goes_through_it_in_every_thread(engine, made):
    trap = engine.swallow_commit("turno.jobs SET stage", times=2)
    failed = []

    def write():
        try:
            for _ in range(3):  # prepared by the server from the third on
                with transaction.atomic(using="engine"), connections["engine"].cursor() as cursor:
                    cursor.execute("SELECT %s::int", [1])
            with transaction.atomic(using="engine"), connections["engine"].cursor() as cursor:
                cursor.execute(STAGE, ["a", made.id])
        except OperationalError as error:
            failed.append(error)
        finally:
            connections["engine"].close()

    write()
    thread = threading.Thread(target=write)
    thread.start()
    thread.join(60)
    assert (len(failed), trap.caught, stage(made)) == (2, 2, "a")


def test_in_a_blackhole_nothing_passes_and_afterwards_everything_does(proxy):
    with connect(proxy, autocommit=True) as connection:
        proxy.blackhole()
        answers = []
        asking = threading.Thread(target=lambda: answers.append(connection.execute("SELECT 1").fetchone()))
        asking.start()
        with pytest.raises(psycopg.OperationalError):  # it is accepted, and never answered
            connect(proxy, connect_timeout=2)
        assert asking.is_alive()
        proxy.open()
        asking.join(60)
        assert answers == [(1,)]


def test_an_answer_may_be_lost_in_a_blackhole_until_somebody_cuts_the_connection(proxy, made):
    trap = proxy.swallow_commit("SET stage", then="blackhole")
    with connect(proxy) as connection:
        connection.execute(STAGE, ["a", made.id])
        ended = []

        def commit():
            try:
                connection.commit()
            except psycopg.OperationalError as error:
                ended.append(error)

        committing = threading.Thread(target=commit)
        committing.start()
        trap.wait()
        assert stage(made) == "a"
        assert committing.is_alive()
        proxy.cut()
        committing.join(60)
        assert len(ended) == 1


def test_a_cut_resets_what_is_open_and_refuses_new_ones_as_long_as_it_is_told_to(proxy):
    with connect(proxy, autocommit=True) as connection:
        proxy.cut(refuse=True)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            connect(proxy)
        proxy.open()
    with connect(proxy) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_an_interrupted_transaction_is_rolled_back(proxy, made):
    with connect(proxy) as connection:
        connection.execute(STAGE, ["a", made.id])
        proxy.cut()
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
    eventually(lambda: rows.select("SELECT 1 FROM turno.jobs FOR UPDATE SKIP LOCKED"), "the server has let go")
    assert stage(made) == ""
