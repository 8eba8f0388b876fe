"""workers.tree on real trees of processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.processes import PROJECT, eventually
from workers import tree

pytestmark = pytest.mark.crash
# One at a time: two that fork as fast as they can leave no processor to whoever hunts them.
BOMBS = pytest.mark.xdist_group("bombs")

HEAD = "import os, signal, sys, time; from workers import tree\n"


class Trees:
    """Programs below this test, each a subreaper, so that the test finds and ends all that they start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.roots: list[subprocess.Popen[bytes]] = []

    def start(self, body: str) -> int:
        code = HEAD + "tree.become_subreaper()\n" + body + "\ntime.sleep(600)"
        root = subprocess.Popen([sys.executable, "-c", code], cwd=self.folder, env={"PYTHONPATH": str(PROJECT)})
        self.roots.append(root)
        return root.pid

    def below(self, root: int, count: int) -> list[int]:
        """Wait until at least `count` processes are below the root."""
        return eventually(
            lambda: (found := tree.descendants(root)) and len(found) >= count and found, f"{count} processes below"
        )

    def end(self) -> None:
        for root in self.roots:
            tree.kill_tree(root.pid, 30)
            root.wait(60)


@pytest.fixture
def trees(tmp_path: Path) -> Iterator[Trees]:
    found = Trees(tmp_path)
    yield found
    found.end()


def test_children_are_the_direct_ones_and_descendants_name_parents_first(trees: Trees) -> None:
    root = trees.start("for _ in range(2):\n    if os.fork() == 0:\n        os.fork(); break")
    found = trees.below(root, 4)
    direct = tree.children(root)
    assert len(direct) == 2
    assert set(direct) == set(found[:2])
    assert root in tree.children(os.getpid())


def test_what_started_a_session_and_lost_its_parents_is_killed_below_a_subreaper(trees: Trees) -> None:
    root = trees.start(
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.setsid(); open('there', 'w'); "
        "time.sleep(600)\n    os._exit(0)"
    )
    eventually((trees.folder / "there").exists, "the daemon runs")
    assert trees.below(root, 1)
    assert tree.kill_below(root)
    assert tree.descendants(root) == []
    assert tree.alive(root)


def test_who_ignores_signals_or_is_stopped_is_killed_too(trees: Trees) -> None:
    root = trees.start(
        "for _ in range(3):\n    if os.fork() == 0:\n        signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "os.kill(os.getpid(), signal.SIGSTOP); time.sleep(600)"
    )
    stopped = trees.below(root, 3)
    eventually(lambda: all(" T " in Path(f"/proc/{pid}/stat").read_text() for pid in stopped), "they are stopped")
    assert all(tree.alive(pid) for pid in stopped)
    assert tree.kill_below(root)
    assert not any(tree.alive(pid) for pid in stopped)


def test_zombies_are_dead_and_do_not_keep_anybody_waiting(trees: Trees) -> None:
    root = trees.start("if (child := os.fork()) == 0: os._exit(3)\nopen('zombie', 'w').write(str(child))")
    zombie = eventually(lambda: (f := trees.folder / "zombie").exists() and f.read_text(), "the child is written down")
    eventually(lambda: " Z " in Path(f"/proc/{zombie}/stat").read_text(), "the child is a zombie")
    assert not tree.alive(int(zombie))
    assert tree.children(root) == tree.descendants(root) == []
    assert tree.kill_below(root)


def test_a_process_whose_first_thread_has_ended_is_no_zombie_and_is_killed(trees: Trees) -> None:
    root = trees.start(
        "import ctypes, threading\nif os.fork() == 0:\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start(); ctypes.CDLL(None).pthread_exit(None)"
    )
    (half,) = trees.below(root, 1)
    eventually(lambda: " Z " in Path(f"/proc/{half}/stat").read_text(), "its first thread has ended")
    assert tree.alive(half)
    assert tree.kill_below(root)
    assert not tree.alive(half)


# Every process of it forks as fast as it can, up to a number that leaves the machine alive: one at a time counts and
# forks, for together they would all find room, and a session of its own has as large a share of the processor as all
# the tests together have.
BOMB = """
import fcntl
most = len(os.listdir('/proc')) + 60
while os.path.exists('lit'):
    with open('turn', 'w') as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        room = len(os.listdir('/proc')) < most
        child = room and os.fork() == 0
        if not child: fcntl.flock(turn, fcntl.LOCK_UN)
    if child: {escape}
    if not room: time.sleep(0.01)
os._exit(0)
"""


@BOMBS
@pytest.mark.parametrize("escape", ["pass", "os.setsid()"], ids=["", "each in a session of its own"])
def test_a_fork_bomb_is_ended(trees: Trees, escape: str) -> None:
    lit = trees.folder / "lit"
    lit.touch()
    try:
        root = trees.start(f"if os.fork() == 0:{BOMB.format(escape=escape).replace('\n', '\n    ')}")
        trees.below(root, 30)
        assert tree.kill_below(root, 60)
        assert tree.descendants(root) == []
    finally:
        lit.unlink()  # whatever became of the test, it burns no longer than that


def test_while_new_ones_come_they_are_stopped_and_then_all_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a number that has a limit: who is killed makes room for the next."""
    one, two, three = (tree._Process(pid, 1, pid, "", False) for pid in (7, 8, 9))
    looks = iter([[one], [one, two], [one, two, three], [one, two, three], []])
    monkeypatch.setattr(tree, "_processes", lambda: next(looks))
    said: list[tuple[signal.Signals, list[int]]] = []
    monkeypatch.setattr(tree, "_signal", lambda number, whom, _all: said.append((number, [one.pid for one in whom])))
    assert tree.kill_below(1)
    assert said == [
        (signal.SIGKILL, [7]),
        (signal.SIGSTOP, [8]),
        (signal.SIGSTOP, [9]),
        (signal.SIGKILL, [7, 8, 9]),
    ]


@BOMBS
def test_one_that_forks_and_ends_all_the_time_is_caught(trees: Trees) -> None:
    root = trees.start(
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nif os.fork() == 0:\n    while True:\n"
        "        if os.fork(): os._exit(0)\n        os.setsid(); open('hopping', 'w').close()"
    )
    eventually((trees.folder / "hopping").exists, "it hops")
    assert tree.kill_below(root, 60)
    assert tree.descendants(root) == []


def test_the_spared_stay_with_all_below_them_even_in_the_group_of_the_killed(trees: Trees) -> None:
    root = trees.start("for _ in range(3):\n    if os.fork() == 0:\n        os.fork(); break")
    everybody = trees.below(root, 6)
    spared = tree.children(root)[1]
    kept = {spared, *tree.descendants(spared)}
    assert tree.kill_below(root, spare=[spared])
    assert set(tree.descendants(root)) == kept
    assert len(kept) == 2 < len(everybody)


def test_a_group_that_others_share_is_not_killed_as_one(trees: Trees) -> None:
    root = trees.start("os.setpgid(0, 0)\nif os.fork() == 0: time.sleep(600)")
    trees.below(root, 1)
    assert os.getpgid(root) == root
    assert tree.kill_below(root)
    assert tree.alive(root)


def test_killing_a_tree_ends_its_root_last_and_what_never_was_is_dead(trees: Trees) -> None:
    root = trees.start("os.fork()")
    below = trees.below(root, 1)
    assert tree.kill_tree(root)
    assert not any(tree.alive(pid) for pid in [root, *below])
    assert tree.kill_tree(root)  # a zombie by now
    assert not tree.alive(2**22 + 1)
    assert tree.kill_below(2**22 + 1)


def test_a_process_can_kill_its_own_tree_and_itself(trees: Trees) -> None:
    root = trees.start(
        "if os.fork() == 0:\n    os.setsid(); time.sleep(600)\nos.kill(os.getpid(), signal.SIGSTOP)\n"
        "tree.kill_tree(os.getpid())"
    )
    below = trees.below(root, 1)
    eventually(lambda: " T " in Path(f"/proc/{root}/stat").read_text(), "it waits")
    os.kill(root, signal.SIGCONT)
    assert trees.roots[-1].wait(60) == -signal.SIGKILL
    assert not any(tree.alive(pid) for pid in below)


def test_reaping_takes_all_that_have_ended_and_waits_for_nobody(trees: Trees) -> None:
    body = (
        "ended = {os.fork() or os._exit(n) for n in (3, 4)}\nsleeper = os.fork() or time.sleep(600)\nfound = {}\n"
        "while len(found) < 2: found |= dict(tree.reap()); time.sleep(0.01)\n"
        "assert set(found) == ended and sleeper not in found\n"
        "open('codes', 'w').write(str(sorted(os.waitstatus_to_exitcode(s) for s in found.values())))"
    )
    trees.start(body)
    told = trees.folder / "codes"
    eventually(lambda: told.exists() and told.read_text() == "[3, 4]", "both are reaped")


def test_a_child_dies_with_its_parent_also_after_an_exec(trees: Trees) -> None:
    root = trees.start(
        "if (middle := os.fork()) == 0:\n    parent = os.getpid()\n    if os.fork() == 0:\n"
        "        tree.die_with_parent(parent); os.execv('/bin/sleep', ['sleep', '600'])\n    time.sleep(600)"
    )
    middle, tied = trees.below(root, 2)
    eventually(lambda: Path(f"/proc/{tied}/comm").read_text() == "sleep\n", "the exec is done")
    os.kill(middle, signal.SIGKILL)
    eventually(lambda: not tree.alive(tied), "it died with its parent")


def test_a_child_whose_parent_ended_before_it_asked_dies_at_once(trees: Trees) -> None:
    trees.start(
        "if os.fork() == 0:\n    parent = os.getpid()\n    if os.fork() == 0:\n"
        "        while os.getppid() == parent: time.sleep(0.01)\n        tree.die_with_parent(parent)\n"
        "        open('survived', 'w')\n    os._exit(0)\n"
        "os.wait(); pid, status = os.wait(); open('status', 'w').write(str(status))"
    )
    told = trees.folder / "status"
    eventually(lambda: told.exists() and told.read_text() == str(int(signal.SIGKILL)), "it was killed")
    assert not (trees.folder / "survived").exists()
