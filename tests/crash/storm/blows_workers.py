"""What a storm does to workers and to their way to PostgreSQL. Each says whether it found somebody."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress

from tests.crash.storm.people import picked
from tests.crash.storm.plan import Blow
from tests.crash.storm.weather import Weather
from tests.kit.processes import WorkerProcess, thaw
from tests.kit.proxy import Then
from workers import tree

LEADER = "SELECT w.name FROM turno.leases AS l JOIN turno.workers AS w ON w.id = l.holder WHERE l.until > now()"
COMMITS = 3  # whose answers are lost at once


def on_a_worker(strike: Callable[[Weather, Blow, WorkerProcess], object]) -> Callable[[Weather, Blow], bool]:
    """The blow at the worker of the place, or at the next one in which it finds what it looks for."""

    def blow(weather: Weather, blow: Blow) -> bool:
        return any(_struck(strike, weather, blow, worker) for worker in weather.standing(blow.place))

    return blow


def on_the_leader(strike: Callable[[Weather, Blow, WorkerProcess], object]) -> Callable[[Weather, Blow], bool]:
    """The blow at the worker that leads."""

    def blow(weather: Weather, blow: Blow) -> bool:
        names = [name for (name,) in weather.ask(LEADER)]
        leaders = [worker for worker in weather.workers if worker.name in names and weather.stands(worker)]
        return bool(leaders) and _struck(strike, weather, blow, leaders[0])

    return blow


def _struck(
    strike: Callable[[Weather, Blow, WorkerProcess], object], weather: Weather, blow: Blow, worker: WorkerProcess
) -> bool:
    """Whether it was still there: a process may end by itself in between."""
    try:
        return strike(weather, blow, worker) is not False
    except (ProcessLookupError, ValueError, IndexError):
        return False


def kill_worker(weather: Weather, blow: Blow, worker: WorkerProcess) -> None:
    worker.kill_worker()


def kill_supervisor(weather: Weather, blow: Blow, worker: WorkerProcess) -> None:
    worker.signal(signal.SIGKILL)


def kill_forkserver(weather: Weather, blow: Blow, worker: WorkerProcess) -> None:
    os.kill(worker.forkserver(), signal.SIGKILL)


def _child(worker: WorkerProcess, chance: float) -> int:
    child = picked(tree.children(worker.forkserver()), chance)
    if child is None:
        raise ProcessLookupError
    return child


def kill_child(weather: Weather, blow: Blow, worker: WorkerProcess) -> None:
    os.kill(_child(worker, blow.chance), signal.SIGKILL)


def freeze_child(weather: Weather, blow: Blow, worker: WorkerProcess) -> None:
    os.kill(pid := _child(worker, blow.chance), signal.SIGSTOP)
    weather.later(blow.lasts, lambda: thaw(pid))


def freeze_worker(weather: Weather, blow: Blow, worker: WorkerProcess) -> None:
    pid = worker.freeze_worker()
    weather.frozen.add(worker.name)
    weather.later(blow.lasts, lambda: _thawed(weather, worker, pid))


def freeze_both(weather: Weather, blow: Blow, worker: WorkerProcess) -> None:
    pid = worker.freeze()
    weather.frozen.add(worker.name)
    weather.later(blow.lasts, lambda: _signal(worker, signal.SIGCONT))
    # The supervisor decides first: what a worker does in the second before it ends itself is another test's.
    weather.later(blow.lasts + 1.5, lambda: _thawed(weather, worker, pid))


def _thawed(weather: Weather, worker: WorkerProcess, pid: int) -> None:
    weather.frozen.discard(worker.name)
    thaw(pid)


def _signal(worker: WorkerProcess, number: int) -> None:
    with suppress(ProcessLookupError):
        worker.signal(number)


def stop(weather: Weather, blow: Blow, worker: WorkerProcess) -> None:
    worker.signal(signal.SIGTERM)


def stop_alone(weather: Weather, blow: Blow, worker: WorkerProcess) -> None:
    os.kill(worker.pid, signal.SIGTERM)


def cut_off(weather: Weather, blow: Blow) -> bool:
    """The cable of the first place: what it held up goes on when it is mended, or is reset then."""
    weather.proxy.blackhole()

    def mended() -> None:
        weather.proxy.open()
        if blow.chance < 0.5:
            weather.proxy.cut()

    weather.later(blow.lasts, mended)
    return True


def reset(weather: Weather, blow: Blow) -> bool:
    found = weather.proxy.connections > 0
    weather.proxy.cut()
    return found


def lose_answers(weather: Weather, blow: Blow) -> bool:
    then: Then = "blackhole" if blow.chance < 0.3 else "cut"
    weather.traps.append(weather.proxy.swallow_commit("turno.jobs", times=COMMITS, then=then))
    return True


BLOWS: dict[str, Callable[[Weather, Blow], bool]] = {
    "kill the worker": on_a_worker(kill_worker),
    "kill the supervisor": on_a_worker(kill_supervisor),
    "kill the forkserver": on_a_worker(kill_forkserver),
    "kill a child": on_a_worker(kill_child),
    "freeze the worker": on_a_worker(freeze_worker),
    "freeze the worker and its supervisor": on_a_worker(freeze_both),
    "freeze a child": on_a_worker(freeze_child),
    "stop the worker": on_a_worker(stop),
    "stop the worker's process alone": on_a_worker(stop_alone),
    "kill the leader": on_the_leader(kill_worker),
    "freeze the leader": on_the_leader(freeze_both),
    "stop the leader": on_the_leader(stop),
    "cut a worker off": cut_off,
    "reset a worker's connections": reset,
    "lose answers to COMMIT": lose_answers,
}
