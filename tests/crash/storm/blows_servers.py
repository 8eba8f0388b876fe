"""What a storm does to PostgreSQL and Redis. Each says whether it found somebody."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress

from tests.crash.storm.plan import Blow
from tests.crash.storm.weather import Weather
from tests.kit.proxy import Proxy
from tests.kit.redis_server import RedisServer
from workers import tree

TERMINATE = """
SELECT count(pg_terminate_backend(pid)) FROM (
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
    ORDER BY md5(pid::text || %s) LIMIT %s
) AS chosen
"""
EVERY = 1000


def terminate(weather: Weather, blow: Blow) -> bool:
    """Some of the connections, or every one, whoever's they are."""
    many = EVERY if blow.chance < 0.2 else 1 + int(blow.chance * 8)
    [(count,)] = weather.ask(TERMINATE, str(blow.chance), many) or [(0,)]
    return bool(count)


def restart_postgres(weather: Weather, blow: Blow) -> bool:
    return _away(weather, blow, lambda: weather.servers.postgres.stop("immediate"))


def kill_postgres(weather: Weather, blow: Blow) -> bool:
    return _away(weather, blow, weather.servers.postgres.kill)


def _away(weather: Weather, blow: Blow, strike: Callable[[], None]) -> bool:
    if "postgres" in weather.away:
        return False
    strike()
    weather.back_later("postgres", blow.lasts, weather.servers.postgres.start)
    return True


def freeze_postgres(weather: Weather, blow: Blow) -> bool:
    """Every process of it: what is connected stays so, and nothing answers."""
    process = weather.servers.postgres.process
    if process is None or "postgres" in weather.away:
        return False
    process.send_signal(signal.SIGSTOP)
    children = tree.children(process.pid)

    def send(number: int) -> None:
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def thaw() -> None:
        send(signal.SIGCONT)
        process.send_signal(signal.SIGCONT)

    send(signal.SIGSTOP)
    weather.back_later("postgres", blow.lasts, thaw)
    return True


def _redis(weather: Weather, blow: Blow, many: int) -> list[tuple[str, RedisServer, Proxy]]:
    """So many of those that are there, from the place on."""
    assert weather.servers.cluster is not None
    servers, proxies = weather.servers.cluster.redis, weather.servers.cluster.redis_proxies
    found = [(f"redis {n}", server, proxies[n]) for n, server in enumerate(servers)]
    turned = found[blow.place :] + found[: blow.place]
    return [one for one in turned if one[0] not in weather.away][:many]


def on_redis(
    many: int, strike: Callable[[RedisServer, Proxy], object], undo: Callable[[RedisServer, Proxy], object] | None
) -> Callable[[Weather, Blow], bool]:
    """The blow at so many of the servers."""

    def blow(weather: Weather, blow: Blow) -> bool:
        found = _redis(weather, blow, many)
        for name, server, proxy in found:
            strike(server, proxy)
            if undo is not None:
                weather.back_later(name, blow.lasts, lambda server=server, proxy=proxy: undo(server, proxy))
        return bool(found)

    return blow


def _kill(server: RedisServer, proxy: Proxy) -> None:
    server.kill()


def _start(server: RedisServer, proxy: Proxy) -> None:
    server.start()


def _flush(server: RedisServer, proxy: Proxy) -> None:
    server.flush()


def _freeze(server: RedisServer, proxy: Proxy) -> None:
    server.freeze()


def _thaw(server: RedisServer, proxy: Proxy) -> None:
    server.thaw()


def _cut_off(server: RedisServer, proxy: Proxy) -> None:
    proxy.blackhole()


def _mend(server: RedisServer, proxy: Proxy) -> None:
    proxy.open()


BLOWS: dict[str, Callable[[Weather, Blow], bool]] = {
    "terminate connections": terminate,
    "restart PostgreSQL": restart_postgres,
    "kill PostgreSQL": kill_postgres,
    "freeze PostgreSQL": freeze_postgres,
    "kill a Redis": on_redis(1, _kill, _start),
    "kill all Redis": on_redis(3, _kill, _start),
    "flush a Redis": on_redis(1, _flush, None),
    "flush all Redis": on_redis(3, _flush, None),
    "freeze a Redis": on_redis(1, _freeze, _thaw),
    "cut a Redis off": on_redis(1, _cut_off, _mend),
    "cut two Redis off": on_redis(2, _cut_off, _mend),
}
