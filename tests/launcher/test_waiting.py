"""What the launcher waits for when containers start."""

import io

import pytest

from turno.launcher import docker
from turno.launcher.compose import Container
from turno.launcher.errors import LauncherError
from turno.launcher.say import Console
from turno.launcher.signals import Signals


@pytest.mark.parametrize(
    ("state", "health", "code", "done"),
    [
        ("running", "healthy", 0, True),
        ("running", "starting", 0, False),
        ("running", "unhealthy", 0, False),
        ("running", "", 0, False),  # the migration, before its end
        ("exited", "", 0, True),
        ("exited", "", 1, False),
        ("restarting", "", 0, False),
        ("created", "", 0, False),
    ],
)
def test_a_container_is_as_it_should_be_when_it_is_healthy_or_has_ended_well(state, health, code, done):
    assert Container("web", "x-web-1", state, health, code).done is done


def test_who_is_not_well_in_time_is_named_with_its_last_words(monkeypatch):
    class Sick:
        def containers(self):
            return [
                Container("worker", f"x-worker-{n}", "running", "healthy" if n else "starting", 0) for n in range(3)
            ]

        def last_words(self, service, since):
            return f"{service} said this since {since}"

    monkeypatch.setattr(docker, "PATIENCE", 0.0)
    model = {"services": {"worker": {"deploy": {"replicas": 3}}}}
    with pytest.raises(LauncherError, match="worker said this since then"):
        docker._wait(Sick(), model, "then", Console(io.StringIO()), Signals())
    model["services"]["worker"]["deploy"]["replicas"] = 2  # as many as are asked for
    docker._wait(Sick(), model, "then", Console(io.StringIO()), Signals())
