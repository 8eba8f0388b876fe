"""What every test may use."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from jobs import bulk, events
from jobs.conf import overridden
from tests.kit import emptied, static_files
from tests.kit.cluster import cluster_of, join
from tests.kit.processes import fleet_of
from tests.kit.rabbitmq_server import RabbitNode, rabbitmq_of_session
from tests.kit.redis_server import running_redis
from turno.launcher import ports

# How long one example takes says how busy the machine is.
settings.register_profile("turno", deadline=None)
settings.load_profile("turno")
# The process that runs the tests tells no screens: its thread would hold a connection to a database that is dropped.
events.silence()
emptied.instead_of_flush()
static_files.look_once()
# Test processes look for free ports at the same time: each in a part of its own.
ports.PRIVATE_RANGE = ports.PRIVATE_RANGE[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) :: 8]


# Three test processes share the whole run (`./testar.sh`), each taking the next test when it is free: what takes long
# comes first, so that they end together.
LONG = ("crash", "launcher", "launcher_slow")
TESTS = Path(__file__).parent
BROWSER = TESTS / "browser"
PROFILES = ("bouncer", "crash", "laws")
# Marked `slow` as a whole, besides what says so itself: many small tests that take seconds together. What stays is what
# `./testar.sh unit` runs in under a minute.
SLOW = (
    "admin", "api", "contract", "cron/test_walk", "doubt", "laws", "live", "outbox", "queries", "rabbitmq", "races",
    "dashboard/test_e", "dashboard/test_hostile", "dashboard/test_lotes", "dashboard/test_painel",
    "dashboard/test_recorrentes", "dashboard/test_tarefa", "dashboard/test_workers_page", "database/test_indexes",
    "isolation/test_reentry", "jobs/test_bulk", "jobs/test_events", "jobs/test_search_plans",
    "launcher/test_cleanup", "locks/test_contract", "locks/test_joblocks", "locks/test_leadership", "locks/test_three",
    "transitions/test_parents_families", "workers/test_demo",
)  # fmt: skip
# What a fixture of these modules builds takes longer than their tests: one process runs all of a module, and builds it
# once.
TOGETHER = (
    "api/test_served", "handlers_api/test_tryout", "outbox/test_plans", "queries/test_plans",
    "transitions/test_gate_plans", "transitions/test_parents_plans", "transitions/test_plans",
)  # fmt: skip


def pytest_itemcollected(item):
    """The marks of those that are slow together, and of those that stay together."""
    module = item.path.relative_to(TESTS).as_posix()
    if module.startswith(SLOW):
        item.add_marker(pytest.mark.slow)
    if module.startswith(TOGETHER):
        item.add_marker(pytest.mark.xdist_group(module))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """What starts processes first, then what opens a browser, then what stays together."""

    def place(item):
        if item.path.is_relative_to(BROWSER):
            return 1
        if any(item.get_closest_marker(marker) for marker in LONG):
            return 0
        return 2 if item.get_closest_marker("xdist_group") else 3

    items.sort(key=place)


@pytest.fixture
def clean_tables(transactional_db):
    """For tests whose rows are committed (threads, processes): empties our tables afterwards."""
    yield
    emptied.empty(emptied.OURS)


@pytest.fixture
def crew(clean_tables):
    """Committed rows and the threads of this process that do acts over many, which have ended when the test ends."""
    yield bulk.crew
    bulk.crew.join()


def pytest_generate_tests(metafunc):
    """The suites of PROFILES run in both profiles: what is marked `both` in every run, the rest of the cluster's half
    with `./testar.sh longo`."""
    if "fleet" in metafunc.fixturenames and metafunc.definition.path.parent.name in PROFILES:
        brief = metafunc.definition.get_closest_marker("both") is not None
        marks = [] if brief else [pytest.mark.longo]
        metafunc.parametrize("profile", ["embedded", pytest.param("cluster", marks=marks)])


@pytest.fixture
def profile():
    """Which profile the workers of a test have."""
    return "embedded"


@pytest.fixture
def fleet(clean_tables, tmp_path, profile, request):
    """Real workers on the test database; what they started is ended with the test."""
    for made in fleet_of(tmp_path):
        yield made if profile == "embedded" else join(made, request.getfixturevalue("cluster"))


@pytest.fixture(scope="session")
def redis_of_session(tmp_path_factory):
    """The Redis of this test process, started when the first test asks for it."""
    with running_redis(tmp_path_factory.mktemp("redis")) as servers:
        yield servers


@pytest.fixture
def cluster(rabbitmq, redis_of_session):
    """RabbitMQ and Redis as they were at first, with names of the test's own; this process writes the outbox too."""
    for server in redis_of_session:
        server.restore()
    with (
        cluster_of(rabbitmq, redis_of_session) as made,
        overridden(messaging={"transport": "rabbitmq", "urls": (rabbitmq.url,), "queue_prefix": made.prefix}),
    ):
        yield made


@pytest.fixture
def redis_server(tmp_path):
    """A private Redis: `redis_server.url`, `.stop()`, `.start()`; ended with the test."""
    with running_redis(tmp_path) as [server]:
        yield server


@pytest.fixture(scope="session")
def rabbitmq_node(tmp_path_factory):
    """The RabbitMQ of this test process, started when the first test asks for it."""
    with rabbitmq_of_session(tmp_path_factory.mktemp("rabbitmq") / "node") as server:
        yield server


@pytest.fixture
def rabbitmq(rabbitmq_node):
    """A RabbitMQ that answers: `url`, `stop`, `start`, `kill`, `freeze`, `ctl`. Its queues stay: use your own names."""
    if isinstance(rabbitmq_node, RabbitNode):
        rabbitmq_node.start()
    return rabbitmq_node
