"""Addresses of databases: what is read from them, what is refused, and what Django is told."""

import pytest

from jobs.databaseurl import parse_database_url
from jobs.sections import Database
from turno.databases import databases

FORM = "expected postgresql://user:password@host:port/database"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p@h:5433/d", {"user": "u", "password": "p", "host": "h", "port": "5433", "dbname": "d"}),
        ("postgres://h/d", {"host": "h", "dbname": "d"}),
        ("postgresql://u:p%40s%2Fs%3A%25%23@h/d", {"user": "u", "password": "p@s/s:%#", "host": "h", "dbname": "d"}),
        ("postgresql://jos%C3%A9@h/d%2Fe", {"user": "josé", "host": "h", "dbname": "d/e"}),
        ("postgresql://u@[::1]:5432/d", {"user": "u", "host": "::1", "port": "5432", "dbname": "d"}),
        ("postgresql:///d?host=/run/pg&port=5433", {"host": "/run/pg", "port": "5433", "dbname": "d"}),
        ("postgresql://a:1,b:2/d", {"host": "a,b", "port": "1,2", "dbname": "d"}),
        ("postgresql://h/d?sslmode=require", {"host": "h", "dbname": "d", "sslmode": "require"}),
        (" postgresql://h/d\n", {"host": "h", "dbname": "d"}),
    ],
)
def test_an_address_is_read_as_libpq_reads_it(url, expected):
    assert parse_database_url(url) == expected


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", FORM),
        ("h/d", FORM),
        ("mysql://h/d", FORM),
        ("postgresql+psycopg://h/d", FORM),
        ("host=h dbname=d", FORM),
        ("postgresql://h/d e", FORM),
        ("postgresql://h/d\x00", FORM),
        ("postgresql://u:p/w@h/d", f"{FORM}, where special characters are written as %xx"),
        ("postgresql://u:1/w@h/d", f"{FORM}, where special characters are written as %xx"),
        ("postgresql://u:p@w@h/d", f"{FORM}, where special characters are written as %xx"),
        ("postgresql://u:p%w@h/d", f"{FORM}, where special characters are written as %xx"),
        ("postgresql://h/d?colour=red", f"{FORM}, where special characters are written as %xx"),
        ("postgresql://h:port/d", f"{FORM}, with a port between 1 and 65535"),
        ("postgresql://h:0/d", f"{FORM}, with a port between 1 and 65535"),
        ("postgresql://h:65536/d", f"{FORM}, with a port between 1 and 65535"),
        ("postgresql://h", f"{FORM}; the name of the database is missing"),
        ("postgresql://h/", f"{FORM}; the name of the database is missing"),
    ],
)
def test_what_is_no_address_is_refused_with_the_form_of_one(monkeypatch, url, sentence):
    monkeypatch.setenv("TURNO_LANG", "en")

    with pytest.raises(ValueError, match="expected") as refused:
        parse_database_url(url)
    assert str(refused.value) == sentence


def test_django_is_told_the_parts_and_the_driver_the_rest():
    section = Database(url="postgresql://u:p%40w@h:5433/d?sslmode=require&connect_timeout=9&options=-c%20a.b%3D1")

    default = databases(section, pooled=False)["default"]

    assert (default["USER"], default["PASSWORD"]) == ("u", "p@w")
    assert (default["HOST"], default["PORT"], default["NAME"]) == ("h", "5433", "d")
    assert default["OPTIONS"]["sslmode"] == "require"
    assert default["OPTIONS"]["connect_timeout"] == "9"
    assert default["OPTIONS"]["options"] == (
        "-c jit=off -c statement_timeout=30000 -c idle_in_transaction_session_timeout=15000 -c a.b=1"
    )


def test_the_engine_binds_on_the_server_and_the_direct_connection_has_no_timeouts():
    aliases = databases(Database(), pooled=False)

    assert set(aliases) == {"default", "engine", "direct"}
    assert aliases["engine"]["OPTIONS"]["server_side_binding"] is True
    assert aliases["engine"]["OPTIONS"]["prepare_threshold"] == 2
    assert "options" not in aliases["direct"]["OPTIONS"]


def test_behind_a_bouncer_only_the_direct_connection_sets_anything_of_the_session():
    section = Database(url="postgresql://bouncer/d", direct_url="postgresql://server/d")

    aliases = databases(section, pooled=False)

    assert [aliases[name]["HOST"] for name in ("default", "engine", "direct")] == ["bouncer", "bouncer", "server"]
    assert aliases["engine"]["OPTIONS"]["prepare_threshold"] is None
    for name in ("default", "engine"):
        assert aliases[name]["DISABLE_SERVER_SIDE_CURSORS"] is True
        assert "options" not in aliases[name]["OPTIONS"]
        assert aliases[name]["OPTIONS"]["each_transaction"] == (30_000, 15_000)
    assert "each_transaction" not in aliases["direct"]["OPTIONS"]


def test_only_the_web_process_pools_and_only_its_own_alias():
    aliases = databases(Database(pool_size=7), pooled=True)

    assert aliases["default"]["OPTIONS"]["pool"]["max_size"] == 7
    assert aliases["default"]["CONN_MAX_AGE"] == 0
    assert "pool" not in aliases["engine"]["OPTIONS"]
    assert "pool" not in aliases["direct"]["OPTIONS"]
