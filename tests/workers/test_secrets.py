"""Passwords and keys of the servers stay in the settings: no line of a start, no process title and no page has them."""

from contextlib import suppress
from pathlib import Path

import pytest

from jobs import health, reachable
from jobs.conf import conf, overridden
from tests.kit.processes import eventually
from tests.transitions.rows import select
from turno.launcher import ports

SECRET = "hunter2"


def nobody():
    """An address of this machine at which nobody listens."""
    return f"127.0.0.1:{ports.free_port()}"


def redis_urls():
    return ",".join(f"redis://turno:{SECRET}@{nobody()}/0" for _ in range(3))


def rabbitmq_away(_rabbitmq):
    return {
        "TURNO_MESSAGING__TRANSPORT": "rabbitmq",
        "TURNO_MESSAGING__URLS": f"amqp://turno:{SECRET}@{nobody()}/,amqps://turno:{SECRET}@{nobody()}/",
    }


def rabbitmq_refuses(rabbitmq):
    return {
        "TURNO_MESSAGING__TRANSPORT": "rabbitmq",
        "TURNO_MESSAGING__URLS": f"amqp://turno:{SECRET}@{rabbitmq().url.rpartition('@')[2]}",
    }


def service_bus_away(_rabbitmq):
    key = f"SharedAccessKeyName=Root;SharedAccessKey={SECRET}"
    return {
        "TURNO_MESSAGING__TRANSPORT": "servicebus",
        "TURNO_MESSAGING__AZURE_CONNECTION_STRING": f"Endpoint=sb://{nobody()};{key};UseDevelopmentEmulator=true",
    }


def titles(fleet):
    """The command lines of all the fleet's processes."""
    found = []
    for pid in fleet.living():
        with suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes().decode())
    assert found
    return found


@pytest.mark.crash
@pytest.mark.parametrize("servers", [rabbitmq_away, rabbitmq_refuses, service_bus_away])
def test_a_worker_whose_servers_are_away_or_refuse_it_says_so_without_its_passwords(fleet, request, servers):
    environment = servers(lambda: request.getfixturevalue("rabbitmq")) | {"TURNO_REDIS__URLS": redis_urls()}
    worker = fleet.start(**environment).wait_ready()
    for event in ("broker.away", "locks.away"):
        eventually(lambda name=event: worker.events(name), event)
    said = eventually(
        lambda: select("SELECT problems::text AS said FROM turno.workers WHERE problems::text ~ 'broker'"),
        "its row says so",
        60,
    )
    shown = [*titles(fleet), str(said)]
    fleet.workers[0].process.terminate()
    worker.wait(60)
    shown.append(worker.log.read_text())

    assert not [text for text in shown if SECRET in text]


@pytest.mark.crash
def test_an_option_that_the_library_does_not_know_ends_the_start_with_a_sentence(fleet):
    for option in ("heartbeat=hunter2", "hunter2=1", "ssl_options={hunter2", "ssl_options={'cafile':'/hunter2'}"):
        worker = fleet.start(
            f"w{len(fleet.workers)}",
            TURNO_MESSAGING__TRANSPORT="rabbitmq",
            TURNO_MESSAGING__URLS=f"amqp://turno:{SECRET}@{nobody()}/?{option}",
        )
        assert worker.wait(60) != 0
        text = worker.log.read_text()
        assert "messaging.urls: " in text
        assert "Traceback" not in text
        assert SECRET not in text


@pytest.fixture
def probed(monkeypatch):
    """The probes of servers that are away."""
    monkeypatch.setattr(health, "_probes", {})
    health.register("postgresql", lambda: None)
    urls = tuple(redis_urls().split(","))
    messaging = {"transport": "rabbitmq", "urls": (f"amqp://turno:{SECRET}@{nobody()}/",)}
    with overridden(messaging=messaging, redis={"urls": urls}) as settings:
        reachable.watch(settings)
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("probed", "db")
def test_health_the_figures_and_the_settings_themselves_show_none(client, settings, caplog):
    settings.ALLOWED_HOSTS = ["*"]
    answers = [client.get(path) for path in ("/health/ready", "/health/live", "/api/stats")]
    shown = [answer.content.decode() for answer in answers] + [str(answer.headers) for answer in answers]
    shown += [repr(conf()), str(conf()), caplog.text, str(health.check_all())]

    assert answers[0].json()["status"] == "degraded"
    assert not [text for text in shown if SECRET in text]
