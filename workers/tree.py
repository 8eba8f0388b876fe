"""The tree of processes below one: who is in it, killing all of it, reaping, and the two ties that hold it together.

Standard library only: the supervisor, the forkserver and its children use it, and none of them may wait for Django.
A process that starts a session or a group of its own, or whose parents have ended, is still below the nearest
*subreaper*. Where the system knows none (not Linux), what lost its parents is not found here.
"""

import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MOST_LOOKS = 50  # at the list of processes, for one picture of it
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # no file can be opened just now
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.05  # seconds between two looks at what was killed


class _Process(NamedTuple):
    pid: int
    parent: int
    group: int
    started: str  # in ticks since boot; "" where that can't be told
    dead: bool


def children(pid: int) -> list[int]:
    """The living direct children of the process, as the kernel sees it now. Raises OSError when that can't be read."""
    return [process.pid for process in _processes() if process.parent == pid and not process.dead]


def descendants(pid: int) -> list[int]:
    """All living processes below the process, parents before their children. Raises OSError as `children` does."""
    return [process.pid for process in _below(_processes(), [pid], ())]


def family(pids: Collection[int]) -> set[int]:
    """These processes, all above and all living ones below them, in one picture. Raises OSError as `children` does."""
    if not pids:
        return set()
    everybody = _processes()
    parents = {process.pid: process.parent for process in everybody}
    found = {process.pid for process in _below(everybody, pids, ())}.union(pids)
    for pid in pids:
        above = parents.get(pid, 0)
        while above and above not in found:
            found.add(above)
            above = parents.get(above, 0)
    return found


def alive(pid: int) -> bool:
    """Whether a process of this id runs, or is stopped; one that only waits to be reaped is dead."""
    process = _read(pid) if LINUX else next((found for found in _listed() if found.pid == pid), None)
    return process is not None and not process.dead


def kill_below(pid: int, seconds: float = 5.0, spare: Collection[int] = (), started: str = "") -> bool:
    """SIGKILL everything below the process, again and again, until nothing but zombies is left there.

    While new ones come they are stopped first: who is killed makes room for another where their number is limited.
    `spare`: processes that stay, with all that is below them. `started`: the process's start time, for one that may
    end, and its id be another's, meanwhile. False when something still lives after `seconds`.
    """
    limit = time.monotonic() + seconds
    pause, seen = FIRST_PAUSE, set[int]()
    while True:
        try:
            everybody = _processes()
            known = not started or any(process.pid == pid and process.started == started for process in everybody)
            victims = _below(everybody, [pid], spare) if known else []
            if not victims:
                return True
            over = time.monotonic() >= limit
            fresh = [victim for victim in victims if victim.pid not in seen]
            grows = bool(seen and fresh) and not over
            _signal(signal.SIGSTOP if grows else signal.SIGKILL, fresh if grows else victims, everybody)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            fresh, over = [], time.monotonic() >= limit
        if over:
            return False
        pause = FIRST_PAUSE if fresh else min(pause * 2, LONGEST_PAUSE)  # new ones come: be quick
        seen.update(victim.pid for victim in fresh)
        time.sleep(pause)


def kill_tree(pid: int, seconds: float = 5.0) -> bool:
    """The same, and the process itself last (stopped first, so that it starts nothing more).

    Ends the caller when it is the process itself. False when something still lives after `seconds`.
    """
    limit = time.monotonic() + seconds
    this = pid == os.getpid()
    started = "" if this else _start_of(pid)  # its id may be another's before this is done
    if not this:
        _send_surely(pid, signal.SIGSTOP, started)
    below = kill_below(pid, seconds, started=started)
    _send_surely(pid, signal.SIGKILL, started)
    pause = FIRST_PAUSE
    while alive(pid) and (not started or _is(pid, started)):
        if time.monotonic() >= limit:
            return False
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
    return below


def reap() -> list[tuple[int, int]]:
    """Take the ended children of this process, without waiting: pairs of pid and wait status."""
    found: list[tuple[int, int]] = []
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found.append(ended)
    return found


def has_children() -> bool:
    """Whether this process has any child, ended ones that nobody has reaped included: one system call."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def load() -> None:
    """Make the two ties ready, so that children forked later do not each load what they need for them."""
    _libc_prctl()


def become_subreaper() -> bool:
    """From now on what loses its parents below this process becomes its child. False where the system can't do it."""
    return _prctl(PR_SET_CHILD_SUBREAPER, 1) == 0


def die_with_parent(parent_pid: int) -> None:
    """For a child that was just forked: SIGKILL it when the parent (the thread that forked it) ends, now included.

    Holds over an exec, and not for what this process forks. Does nothing where the system can't do it.
    """
    if _prctl(PR_SET_PDEATHSIG, signal.SIGKILL) == 0 and os.getppid() != parent_pid:  # it ended before that line
        os.kill(os.getpid(), signal.SIGKILL)


def _prctl(option: int, value: int) -> int:
    call = _libc_prctl()
    return -1 if call is None else int(call(option, value, 0, 0, 0))


@cache
def _libc_prctl() -> Callable[..., Any] | None:
    if not LINUX:
        return None
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).prctl
    call.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return call


def _below(everybody: list[_Process], roots: Collection[int], spare: Collection[int]) -> list[_Process]:
    by_parent: dict[int, list[_Process]] = {}
    for process in everybody:
        if process.pid not in spare:
            by_parent.setdefault(process.parent, []).append(process)
    found: list[_Process] = []
    look, known = [*roots], {*roots}
    while look:  # a snapshot that took a moment may show a circle, where ids were used again meanwhile
        fresh = [process for process in by_parent.get(look.pop(0), ()) if process.pid not in known]
        found += fresh
        look += [process.pid for process in fresh]
        known.update(look)
    return [process for process in found if not process.dead]


def _signal(number: signal.Signals, victims: list[_Process], everybody: list[_Process]) -> None:
    """A group that holds nobody else gets the signal as one, so that nobody in it gets away by forking."""
    pids = {victim.pid for victim in victims}
    members: dict[int, list[_Process]] = {}
    for process in everybody:
        if not process.dead:
            members.setdefault(process.group, []).append(process)
    for group in {victim.group for victim in victims}:
        inside = members.get(group, [])
        if group > 1 and inside and all(process.pid in pids for process in inside):
            try:
                os.killpg(group, number)
            except OSError:
                continue
    for victim in reversed(victims):  # what was seen last is the most likely to be there still
        send(victim.pid, number, victim.started)


def send(pid: int, number: signal.Signals, started: str = "") -> None:
    """Signal exactly the process of this start time, where the system can hold on to one; whoever is gone is no error.

    Raises OSError when no file can be opened just now.
    """
    try:
        if not (LINUX and started):
            os.kill(pid, number)
            return
        handle = os.pidfd_open(pid)
        try:
            if _is(pid, started):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
    except (ProcessLookupError, PermissionError):
        return


def _send_surely(pid: int, number: signal.Signals, started: str) -> None:
    try:
        send(pid, number, started)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        send(pid, number)  # nothing can be opened to hold on to it


def _start_of(pid: int) -> str:
    try:
        seen = _read(pid) if LINUX else None
    except OSError:
        return ""
    return seen.started if seen is not None else ""


def _is(pid: int, started: str) -> bool:
    now = _read(pid)
    return now is not None and now.started == started


def _processes() -> list[_Process]:
    if not LINUX:
        return _listed()
    # One look is no snapshot: who forks and ends all the time is in no list by the time that it is read. So look again
    # until nobody new is there: whoever lives then has been read.
    looked_at: set[int] = set()
    found: dict[int, _Process] = {}
    for _ in range(MOST_LOOKS):
        fresh = {int(name) for name in os.listdir("/proc") if name.isdigit()} - looked_at  # noqa: PTH208
        if not fresh:
            break
        looked_at |= fresh
        found.update((pid, process) for pid in sorted(fresh) if (process := _read(pid)) is not None)
    for process in list(found.values()):
        if process.parent and process.parent not in found:  # its parent ended meanwhile, and it has another now
            again = _read(process.pid)
            del found[process.pid]
            if again is not None:
                found[again.pid] = again
    return list(found.values())


def stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on; none when the process is gone, or can't be seen."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(file, 4096)
        finally:
            os.close(file)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []
    # The command's name may hold blanks and parentheses: count the fields from the last ")".
    return text.rpartition(b")")[2].decode().split()


def _read(pid: int) -> _Process | None:
    fields = stat(pid)
    if not fields:
        return None
    # A first thread that has ended shows as a zombie while others of its process still run.
    dead = fields[0] in "ZXx" and int(fields[17]) <= 1
    return _Process(pid, int(fields[1]), int(fields[2]), fields[19], dead)


def _listed() -> list[_Process]:
    import subprocess

    columns = ["ps", "-A", "-o", "pid=,ppid=,pgid=,state="]
    with subprocess.Popen(columns, stdout=subprocess.PIPE, text=True) as ps:
        rows = [line.split() for line in ps.communicate()[0].splitlines()]
    return [
        _Process(int(pid), int(parent), int(group), "", state[0] == "Z")
        for pid, parent, group, state in rows
        if int(pid) != ps.pid
    ]
