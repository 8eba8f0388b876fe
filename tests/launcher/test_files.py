"""`.env`, the settings that the launcher reads, the lock and the note of what runs."""

import subprocess
import sys

import pytest

from turno.launcher import database, envfile
from turno.launcher.config import Config
from turno.launcher.errors import LauncherError
from turno.launcher.paths import ROOT, Project
from turno.launcher.processes import Identity
from turno.launcher.say import Console
from turno.launcher.signals import Signals
from turno.launcher.state import Lock, State

HOLDER = """
import sys, pathlib
from turno.launcher.state import Lock
print(Lock(pathlib.Path(sys.argv[1])).take(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def project(tmp_path):
    found = Project(tmp_path)
    found.prepare()
    return found


def test_a_variable_is_replaced_where_it_stands_and_everything_else_stays(tmp_path):
    path = tmp_path / ".env"
    path.write_text("# a\nexport A = 'old'\nAB=keep\n\n# end")
    envfile.update(path, {"A": "new\\1", "B": "2"})
    assert path.read_text() == "# a\nA=new\\1\nAB=keep\n\n# end\nB=2\n"
    assert envfile.read(path) == {"A": "new\\1", "AB": "keep", "B": "2"}


def test_the_file_is_readable_by_its_owner_alone_from_its_first_moment(tmp_path):
    path = tmp_path / ".env"
    envfile.update(path, {"A": "1"})
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    envfile.protect(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("A=1\n")
    (tmp_path / ".env").symlink_to("real")
    envfile.update(tmp_path / ".env", {"A": "2"})
    assert (tmp_path / ".env").is_symlink()
    assert (tmp_path / "real").read_text() == "A=2\n"


@pytest.mark.parametrize(("raw", "words"), [(b"A=\xe9\n", "UTF-8"), (b"A=1\n# b\nB='2\n", "line 3")])
def test_a_file_that_is_no_env_file_is_named_instead_of_read_in_part(tmp_path, raw, words):
    (tmp_path / ".env").write_bytes(raw)
    with pytest.raises(LauncherError, match=words) as caught:
        envfile.read(tmp_path / ".env")
    assert str(tmp_path / ".env") in str(caught.value)


@pytest.mark.parametrize("url", ["sqlite:///db.sqlite3", "mysql://a:secret@h/d", "postgresql://h:port/d", "x://[h"])
def test_what_is_no_address_of_postgresql_is_left_for_the_product_to_refuse(project, url, capsys):
    config = Config(project, {"DATABASE_URL": url})
    assert config.own_database == url
    database.wait_for(url, Console(), Signals())
    assert capsys.readouterr().out == ""


def test_the_environment_wins_over_env_file_over_toml_over_the_default(project):
    assert Config(project, {}).port == 8080
    (project.root / "turno.toml").write_text("[web]\nport = 8001\n")
    assert Config(project, {}).port == 8001
    project.env_file.write_text("TURNO_WEB__PORT=8002\n")
    assert Config(project, {}).port == 8002
    assert Config(project, {"TURNO_WEB__PORT": "8003"}).port == 8003
    assert Config(project, {"TURNO_WEB__PORT": "8003"}, port=8004).port == 8004


@pytest.mark.parametrize("value", ["0", "65536", "http", "-1", "8080x"])
def test_a_port_that_is_none_gives_a_sentence(project, value):
    with pytest.raises(LauncherError, match=r"web\.port"):
        _ = Config(project, {"TURNO_WEB__PORT": value}).port


def test_a_settings_file_that_is_no_toml_gives_a_sentence(project):
    (project.root / "turno.toml").write_text("[web\n")
    with pytest.raises(LauncherError, match=r"turno\.toml"):
        Config(project, {})


def test_secrets_are_random_written_once_and_never_over_what_somebody_chose(project):
    project.env_file.write_text("TURNO_API__KEY=\n")
    config = Config(project, {})
    assert config.write_secrets() is True
    assert config.key == ""
    first = project.env_file.read_text()
    assert Config(project, {}).write_secrets() is False
    assert project.env_file.read_text() == first
    project.env_file.unlink()
    Config(project, {}).write_secrets()
    assert project.env_file.read_text() != first


def test_only_an_address_that_somebody_configured_counts_as_an_own_database(project):
    private = "postgresql://turno_private:s3cret@127.0.0.1:20001/turno"
    assert Config(project, {"TURNO_DATABASE__URL": private}).own_database == ""
    assert Config(project, {"TURNO_DATABASE__URL": private}).private_password == "s3cret"
    assert Config(project, {"DATABASE_URL": "postgresql://me@db/x"}).own_database == "postgresql://me@db/x"
    assert Config(project, {}).private_password is None


@pytest.mark.parametrize(
    ("bind", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),  # noqa: S104
        ("::1", "http://[::1]:8080"),
    ],
)
def test_the_address_is_one_that_this_machine_reaches(project, bind, address):
    assert Config(project, {"TURNO_WEB__BIND": bind}).address == address


def test_a_lock_has_one_holder_and_goes_with_it(tmp_path):
    lock = Lock(tmp_path / "lock")
    assert lock.holder() is None
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock.path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert lock.take() is False
        holder = lock.holder()
        assert holder is not None
        assert holder.pid == other.pid
        other.kill()
    assert lock.holder() is None
    assert lock.take() is True
    lock.release()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"processes": {"web": 3}, "since": "x"}'])
def test_a_damaged_note_counts_as_none(tmp_path, damage):
    path = tmp_path / "state.json"
    path.write_text(damage)
    assert State.read(path).processes == {}


def test_a_note_is_read_as_it_was_written(tmp_path):
    state = State("http://x", 1.5, True, {"web": Identity(3, "then")}, 85.0, {"web": 10.0})
    state.write(tmp_path / "state.json")
    assert State.read(tmp_path / "state.json") == state
