"""Options, languages, progress, and the one sentence for each thing that goes wrong."""

import errno
import fcntl
import io
import os
import pty
import shutil
import struct
import termios
from collections import namedtuple

import pytest

from turno.launcher import install, patience
from turno.launcher.config import Config
from turno.launcher.errors import LauncherError, sentence
from turno.launcher.options import Options, parse
from turno.launcher.paths import Project
from turno.launcher.say import Console, language
from turno.launcher.screen import welcome

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], Options()),
        (["--porta", "9000", "--sem-navegador"], Options(port=9000, browser=False)),
        (["--port=9000", "--no-browser"], Options(port=9000, browser=False)),
        (["--parar"], Options("stop")),
        (["--stop"], Options("stop")),
        (["--estado"], Options("status")),
        (["--status"], Options("status")),
        (["--ajuda"], Options("help")),
        (["-h"], Options("help")),
    ],
)
def test_options_have_a_portuguese_and_an_english_name(arguments, expected):
    assert parse(arguments) == expected


@pytest.mark.parametrize("option", ["--dockr", "--caos", "start", "--parar=1", "-x"])
def test_an_unknown_option_is_named(option):
    with pytest.raises(LauncherError, match=option.partition("=")[0]):
        parse([option])


@pytest.mark.parametrize("arguments", [["--porta"], ["--porta", "x"], ["--porta=0"], ["--port", "65536"]])
def test_a_port_option_without_a_port_is_refused(arguments):
    with pytest.raises(LauncherError, match="--port"):
        parse(arguments)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "pt_BR"),
        ({"LANG": "C.UTF-8"}, "pt_BR"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "pt_BR.UTF-8"}, "pt_BR"),
        ({"LANG": "pt_BR.UTF-8", "TURNO_LANG": "en"}, "en"),
    ],
)
def test_the_first_language_variable_that_is_set_decides(environ, expected):
    assert language(environ) == expected


def test_progress_that_is_not_on_a_terminal_does_not_flood_the_log():
    stream = io.StringIO()
    console = Console(stream)
    console.done("first")
    for number in range(100):
        console.progress(f"step {number}")
    console.done("last")
    assert len(stream.getvalue().splitlines()) == 2


@pytest.mark.parametrize(("columns", "room"), [(0, 75), (200, 195), (10, 5), (3, 1)])
def test_a_changing_line_never_wraps_and_a_terminal_without_a_size_counts_as_80_columns(columns, room):
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(follower, "w", encoding="utf-8") as terminal:
        Console(terminal).progress("x" * 300)
    assert os.read(leader, 4096).count(b"x") == room
    os.close(leader)


def test_a_terminal_that_is_gone_stops_nothing():
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w", encoding="utf-8") as terminal:
        console = Console(terminal)
        os.close(leader)
        console.progress("one")
        console.progress("two")
        console.done("three")


def test_a_terminal_that_knows_only_ascii_gets_what_it_can_show():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(stream).done("não")
    stream.seek(0)
    assert stream.read() == "  ok n?o\n"


def test_without_a_key_the_examples_send_none(tmp_path):
    stream = io.StringIO()
    welcome(Console(stream), Config(Project(tmp_path), {"TURNO_API__KEY": ""}), 3, 1.0)
    assert "X-Turno-Key" not in stream.getvalue()
    assert "curl http://127.0.0.1:8080/api/workers" in stream.getvalue()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EACCES, "has no permission"),
        (errno.EROFS, "has no permission"),
        (errno.EIO, "refused"),
    ],
)
def test_an_error_of_the_system_becomes_one_sentence_with_the_place(number, words):
    told = sentence(OSError(number, "words", "/some/place"))
    assert words in told
    assert "/some/place" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "no space left"),
        ("ERROR: … [Errno 13] Permission denied: '/x'", "has no permission"),
        ("ERROR: Could not find a version\nERROR: No matching distribution found for django==6.1.3", "downloaded"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "DO NOT MATCH"),
        ("", "could not be installed"),
    ],
)
def test_what_pip_says_becomes_one_sentence(tmp_path, told, words):
    message = str(install._failure(told, tmp_path, tmp_path / "log"))
    assert words in message
    assert "\n" not in message


def test_a_small_disk_is_noticed_before_anything_is_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(20 << 20, 0, 20 << 20))
    with pytest.raises(LauncherError, match=r"20 MB free, 400 MB needed"):
        install.ensure(tmp_path / ".venv", [_requirements(tmp_path)], tmp_path / "log", Console(io.StringIO()))
    assert not (tmp_path / ".venv").exists()


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/precious").touch()
    with pytest.raises(LauncherError, match="not a virtual environment"):
        install.ensure(tmp_path / ".venv", [_requirements(tmp_path)], tmp_path / "log", Console(io.StringIO()))
    assert (tmp_path / ".venv/precious").exists()


@pytest.mark.launcher_slow
def test_an_environment_is_filled_once_and_again_when_the_requirements_change(tmp_path):
    requirements, console = _requirements(tmp_path), Console(io.StringIO())
    arguments = (tmp_path / ".venv", [requirements], tmp_path / "log", console)
    assert install.ensure(*arguments) is True
    assert install.ensure(*arguments) is False
    requirements.write_text("# changed\n")
    assert install.ensure(*arguments) is True
    (tmp_path / ".venv/bin/python").unlink()  # the Python that it was made with is gone
    assert install.ensure(*arguments) is True
    assert install.ensure(*arguments) is False


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 30.0), ("45s", 45.0), ("2 min", 120.0), ("500ms", 0.5), ("90", 90.0), ("soon", 30.0)]
)
def test_the_workers_time_to_stop_is_read_as_the_product_reads_it(text, seconds):
    assert patience.seconds(text, 30.0) == seconds


def test_a_worker_gets_its_own_two_times_to_stop_and_its_supervisors(tmp_path):
    def given(**environ):
        return patience.worker(Config(Project(tmp_path), environ))

    assert given(TURNO_WORKER__SHUTDOWN_TIMEOUT="2 min", TURNO_WORKER__KILL_GRACE="20s") == 140 + patience.MARGIN
    assert given() == patience.UNKNOWN


def _requirements(folder):
    path = folder / "base.txt"
    path.write_text("# nothing\n")
    return path
