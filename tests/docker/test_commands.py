"""The commands of the containers do what they are for: run as processes, with the image's files and nothing else."""

import os
import shutil
import signal
import subprocess

import pytest

from tests.docker.composed import SECRETS, in_image, model
from tests.docker.containers import Containers, consumers
from tests.kit.processes import eventually
from tests.kit.rabbitmq_server import raw
from turno.launcher import ports
from workers import tree


@pytest.fixture
def services(tmp_path):
    (tmp_path / "compose").mkdir()
    found = model(tmp_path / "compose")
    return {**found["services"], "configs": found["configs"]}


@pytest.fixture
def redis(services, tmp_path):
    """The Redis of the file: its configuration and its command, on another port."""
    program = shutil.which("redis-server")
    assert program, "no redis-server is on the PATH; install the package redis-server"
    port, folder = ports.free_port(), tmp_path / "redis"
    folder.mkdir()
    [config] = services["redis"]["configs"]
    text = services["configs"][config["source"]]["content"]
    (folder / "redis.conf").write_text(f'{text}\nport {port}\nbind 127.0.0.1\ndir "{folder}"\n')
    command = [
        str(folder / "redis.conf") if word == config["target"] else word for word in services["redis"]["command"]
    ]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    yield {"port": port, "url": f"redis://:{SECRETS['REDIS_PASSWORD']}@127.0.0.1:{port}/0", "process": process}
    process.kill()
    process.wait(60)


@pytest.fixture
def containers(services, redis, rabbitmq, clean_tables, tmp_path):
    image = tmp_path / "image"
    image.mkdir()
    built = Containers(services, in_image(image), tmp_path, rabbitmq.url, redis["url"])
    yield built
    built.close()


def _redis_health(services, redis, **changes):
    _shell, text = services["redis"]["healthcheck"]["test"]
    return subprocess.run(
        ["sh", "-c", text.replace("redis-cli", f"redis-cli -p {redis['port']}")],
        env={"PATH": os.environ["PATH"], **services["redis"]["environment"], **changes},
        capture_output=True,
        check=False,
    ).returncode


@pytest.mark.slow
def test_redis_takes_its_password_alone_and_its_health_check_notices_a_refusal(services, redis):
    eventually(lambda: _redis_health(services, redis) == 0, "Redis is healthy")
    assert _redis_health(services, redis, REDISCLI_AUTH="another") != 0
    redis["process"].kill()
    redis["process"].wait(60)
    assert _redis_health(services, redis) != 0


@pytest.mark.crash
def test_migration_web_process_and_worker_do_a_job_together_and_their_health_checks_tell_it(containers, rabbitmq):
    migrated = containers.run("migrate")
    assert migrated.returncode == 0, migrated.stderr
    assert "first user made: admin" in migrated.stdout
    assert containers.health("web").returncode != 0
    absent = containers.health("worker")
    assert (absent.returncode, absent.stderr) == (1, "No worker runs here.\n")
    for service in ("web", "worker"):
        containers.start(service)
    for service in ("web", "worker"):
        eventually(lambda service=service: containers.healthy(service), f"{service} is healthy")
    sent = containers.ask("/api/jobs", {"type": "report.generate", "payload": {"rows": 5, "duration": 1}})

    def succeeded():
        found = containers.ask(f"/api/jobs/{sent['id']}")
        assert found["state"] not in {"Failed", "Cancelled"}, found
        return found["state"] == "Succeeded"

    eventually(succeeded, "the job is done")
    with raw(rabbitmq.url) as channel:  # its only way to the worker
        eventually(lambda: consumers(channel, f"{containers.queue_prefix}-default") == 1, "the worker consumes")
    demo = containers.inside("web", "python", "-m", "turno.launcher.demo", "2")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    for service in ("worker", "web"):
        containers.started[service].send_signal(signal.SIGTERM)
    assert containers.started["worker"].wait(60) == 0, containers.log("worker")
    containers.started["web"].wait(60)
    assert containers.health("worker").returncode == 1
    assert containers.health("web").returncode != 0


@pytest.mark.crash
def test_a_worker_that_freezes_is_not_healthy(containers):
    assert containers.run("migrate").returncode == 0
    containers.start("worker")
    eventually(lambda: containers.healthy("worker"), "the worker is healthy")
    supervisor = containers.started["worker"]
    for pid in (supervisor.pid, *tree.children(supervisor.pid)):
        os.kill(pid, signal.SIGSTOP)
    eventually(lambda: containers.health("worker").returncode == 1, "the worker is not healthy")
    assert "last sign of life" in containers.health("worker").stderr
