"""`--cluster`: RabbitMQ and Redis of one's own, with stand-ins for the web process and the workers."""

import os
import shutil
import signal
import stat
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.launcher.stand_in import StandIn, until
from turno.launcher import envfile, rabbitmq, redis_server
from turno.launcher.account import Account
from turno.launcher.config import Config
from turno.launcher.errors import LauncherError
from turno.launcher.paths import Project
from turno.launcher.processes import Identity, alive
from turno.launcher.rabbitmq import PrivateRabbitMQ, Programs
from turno.launcher.redis_server import PrivateRedis
from turno.launcher.servers import Servers

SERVERS = {"epmd", "rabbitmq", "redis"}
NAMES = ("TURNO_MESSAGING__TRANSPORT", "TURNO_MESSAGING__URLS", "TURNO_REDIS__URLS")
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}  # as the kernel writes 127.0.0.1 and ::1


def _config(folder: Path, **environ: str) -> Config:
    return Config(Project(folder), environ)


def _environment(identity: Identity) -> dict[str, str]:
    found = Path(f"/proc/{identity.pid}/environ").read_bytes().decode().split("\0")
    return dict(line.split("=", 1) for line in found if "=" in line)


def _listening(identity: Identity) -> set[str]:
    """The addresses on which the process takes TCP connections, as the kernel writes them."""
    links = [str(fd.readlink()) for fd in Path(f"/proc/{identity.pid}/fd").iterdir()]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return {line[1].split(":")[0] for line in lines if line[3] == "0A" and line[9] in inodes}


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without RabbitMQ and Redis."""
    monkeypatch.setattr(rabbitmq, "programs", lambda: None)
    monkeypatch.setattr(redis_server, "program", lambda: None)


def test_a_machine_without_the_programs_gets_a_sentence_with_the_command_that_brings_them(tmp_path, nowhere):
    with pytest.raises(LauncherError, match="RabbitMQ, Redis") as caught:
        Servers.wanted(Project(tmp_path), _config(tmp_path))
    told = str(caught.value)
    assert "RUNLEVEL=1 apt-get install --no-install-recommends rabbitmq-server redis-server" in told
    assert "\n" not in told


def test_only_what_is_missing_is_named(tmp_path, nowhere):
    own = _config(tmp_path, TURNO_MESSAGING__URLS="amqp://me:x@broker:5672/")
    with pytest.raises(LauncherError) as caught:
        Servers.wanted(Project(tmp_path), own)
    assert "redis-server" in str(caught.value)
    assert "rabbitmq-server" not in str(caught.value)


@pytest.mark.parametrize(
    "broker", [{"TURNO_MESSAGING__URLS": "amqp://me:x@broker:5672/"}, {"TURNO_MESSAGING__TRANSPORT": "servicebus"}]
)
def test_servers_that_somebody_configured_are_used(tmp_path, nowhere, broker):
    config = _config(tmp_path, TURNO_REDIS__URLS="redis://:x@redis:6379/0", **broker)
    assert Servers.wanted(Project(tmp_path), config) == Servers(None, None)


def test_addresses_of_ours_count_as_none(tmp_path):
    config = _config(
        tmp_path,
        TURNO_MESSAGING__URLS="amqp://turno_private:x@127.0.0.1:20002/",
        TURNO_REDIS__URLS="redis://turno_private:x@127.0.0.1:20003/0",
    )
    assert (config.own_broker, config.own_redis) == (False, False)


def test_debians_wrapper_which_serves_no_other_user_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    wrapper, script = tmp_path / "usr/sbin/rabbitmq-server", tmp_path / "usr/lib/rabbitmq/bin/rabbitmq-server"
    for path in (wrapper, script):
        path.parent.mkdir(parents=True)
        path.touch(0o755)
    found = rabbitmq.programs(tmp_path)
    assert found is not None
    assert found.server == script
    script.unlink()
    assert rabbitmq.programs(tmp_path) is None


def test_secrets_are_for_their_owner_alone_and_stand_in_no_command_line(tmp_path):
    programs = Programs(Path("/bin/false"), Path("/bin/false"))
    broker = PrivateRabbitMQ(tmp_path / "rabbitmq", tmp_path, programs, None)
    store = PrivateRedis(tmp_path / "redis", tmp_path, Path("/bin/false"), None)
    broker.prepare()
    store.prepare()
    for server, child in ((broker, broker.children()[1]), (store, store.child())):
        password = (server.folder / "password").read_text().strip()
        assert password in server.url
        assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
        for path in server.folder.rglob("*"):
            if path.is_file() and password in path.read_text():
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert password not in " ".join([*map(str, child.argv), *child.env.values()])


def test_ports_and_passwords_are_kept_from_start_to_start(tmp_path):
    programs = Programs(Path("/bin/false"), Path("/bin/false"))
    urls = []
    for _start in range(2):
        broker = PrivateRabbitMQ(tmp_path / "rabbitmq", tmp_path, programs, None)
        broker.prepare()
        urls.append((broker.url, broker.epmd_port, broker.dist_port))
    assert urls[0] == urls[1]


def test_data_that_know_another_password_are_made_anew(tmp_path):
    broker = PrivateRabbitMQ(tmp_path / "rabbitmq", tmp_path, Programs(Path("/bin/false"), Path("/bin/false")), None)
    broker.prepare()
    (broker.folder / "mnesia").mkdir()
    broker.prepare()
    assert (broker.folder / "mnesia").exists()
    (broker.folder / "password").unlink()
    broker.prepare()
    assert not (broker.folder / "mnesia").exists()


def test_private_servers_stand_where_their_user_can_reach_them(tmp_path, monkeypatch):
    project = Project(tmp_path / "project", tmp_path / "system")
    (tmp_path / "project").mkdir()
    project.prepare()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert project.server("redis") == project.state / "redis"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert project.server("redis") == project.system_data / project.digest / "redis"
    assert Account("turno", 5, 5).popen()["user"] == 5


@pytest.mark.launcher_slow
def test_a_start_brings_both_servers_on_loopback_tells_everybody_of_them_and_ends_them(stand_in: StandIn):
    launcher = stand_in.start("--cluster")
    running = stand_in.state.processes
    assert set(running) == {"postgres", *SERVERS, "web", "worker-1", "worker-2", "worker-3"}
    env_file = envfile.read(stand_in.root / ".env")
    for name in ("web", "worker-1", "worker-2", "worker-3"):
        seen = _environment(running[name])
        assert {key: seen.get(key) for key in NAMES} == {key: env_file[key] for key in NAMES}
    assert env_file["TURNO_MESSAGING__TRANSPORT"] == "rabbitmq"
    assert stat.S_IMODE((stand_in.root / ".env").stat().st_mode) == 0o600
    for name in (*SERVERS, "postgres"):
        assert _listening(running[name]), name
        assert _listening(running[name]) <= LOOPBACK, name
    shown = stand_in.run("--status").stdout
    assert all(name in shown for name in SERVERS)
    assert stand_in.run("--stop").returncode == 0
    told = launcher.communicate()[0]
    assert "RabbitMQ on port" in told
    assert "Redis on port" in told
    assert not [name for name, identity in running.items() if alive(identity)]


@pytest.mark.launcher_slow
@pytest.mark.longo  # test_whole_cluster.py kills a launcher every time
def test_a_killed_launcher_takes_the_servers_along_and_the_next_start_finds_them_as_they_were(stand_in: StandIn):
    launcher = stand_in.start("--cluster")
    left, before = stand_in.state.processes, envfile.read(stand_in.root / ".env")
    launcher.kill()
    launcher.communicate()
    until(lambda: not any(alive(left[name]) for name in SERVERS), "the servers follow")
    stand_in.start("--cluster")
    assert {name: envfile.read(stand_in.root / ".env")[name] for name in NAMES} == {
        name: before[name] for name in NAMES
    }
    assert not [name for name, identity in left.items() if alive(identity)]


@pytest.mark.launcher_slow
def test_servers_that_survived_a_killed_launcher_are_ended_before_the_next_start(stand_in: StandIn):
    launcher = stand_in.start("--cluster")
    left = stand_in.state.processes
    for name in SERVERS:  # frozen, they can't follow the launcher
        os.kill(left[name].pid, signal.SIGSTOP)
    launcher.kill()
    launcher.communicate()
    for name in SERVERS:
        os.kill(left[name].pid, signal.SIGCONT)
    assert "killed start had left" in stand_in.run("--stop").stdout
    assert not [name for name, identity in left.items() if alive(identity)]


@pytest.mark.launcher_slow
def test_a_server_that_dies_is_started_again_at_its_address_and_that_is_said(stand_in: StandIn):
    launcher = stand_in.start("--cluster")
    env_file = envfile.read(stand_in.root / ".env")
    broker = PrivateRabbitMQ(stand_in.root, stand_in.root, Programs(Path(), Path()), None)
    broker.port = urlsplit(env_file[NAMES[1]]).port or 0
    for name in SERVERS:
        first = stand_in.state.processes[name]
        os.kill(first.pid, signal.SIGKILL)
        until(lambda name=name, first=first: stand_in.state.processes.get(name, first) != first, f"{name} runs again")
    until(broker.answers, "RabbitMQ answers")
    assert envfile.read(stand_in.root / ".env") == env_file
    launcher.send_signal(signal.SIGINT)
    told = launcher.communicate()[0]
    assert all(f"{name} ended (SIGKILL)" in told for name in SERVERS)


@pytest.mark.launcher_slow
def test_a_start_without_the_option_goes_through_postgresql_again_and_says_so(stand_in: StandIn):
    stand_in.start("--cluster").send_signal(signal.SIGTERM)
    stand_in.launchers[0].communicate()
    second = stand_in.start()
    assert not SERVERS & set(stand_in.state.processes)
    env_file = envfile.read(stand_in.root / ".env")
    assert [env_file[name] for name in NAMES] == ["", "", ""]
    seen = _environment(stand_in.state.processes["worker-1"])
    assert not any(seen.get(name) for name in NAMES)
    second.send_signal(signal.SIGTERM)
    assert "through PostgreSQL again" in second.communicate()[0]


@pytest.mark.launcher_slow
def test_a_server_that_does_not_start_ends_the_start_with_its_last_words_and_leaves_nothing(stand_in: StandIn):
    stand_in.start("--cluster").send_signal(signal.SIGTERM)
    stand_in.launchers[0].communicate()
    (stand_in.project.server("rabbitmq") / "advanced.config").write_text("this is no term")
    launcher = stand_in.launch("--cluster")
    told = launcher.communicate()[0]
    assert launcher.returncode == 1
    assert "rabbitmq does not start" in told
    assert "Traceback" not in told
    assert not stand_in.state.processes


def test_the_file_without_quotes_is_read_where_the_package_for_it_is_not_installed(tmp_path):
    path = tmp_path / ".env"
    path.write_text("# a\nA=1\n export B = 'two words'\nC=\n#D=4\n")
    assert envfile.as_written(path) == {"A": "1", "B": "two words", "C": ""}
    assert envfile.as_written(tmp_path / "none") == {}
