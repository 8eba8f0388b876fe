"""Posts of workers around each transport in turn, on committed rows."""

import pytest
from django.db import connections

import tests.contract.harness_servicebus  # noqa: F401  (it adds itself)
from tests.contract.harnesses import BROKERS, HARNESSES
from tests.contract.post import Post
from tests.kit.broker import loop_beside
from tests.kit.english import english  # noqa: F401  (around each test)
from tests.kit.processes import database_url
from tests.kit.proxy import Proxy, through
from tests.kit.servicebus import running_service_bus
from tests.transitions.rows import empty_tables


def pytest_generate_tests(metafunc):
    """`transport` stands for every one, `broker` for those that have a broker; a mark `needs` picks the able ones."""
    for fixture, names in (("transport", HARNESSES), ("broker", BROKERS)):
        if fixture in metafunc.fixturenames:
            wanted = {word for mark in metafunc.definition.iter_markers("needs") for word in mark.args}
            able = [name for name, harness in names.items() if harness.can >= wanted]
            metafunc.parametrize(fixture, able, indirect=True, ids=able)


@pytest.fixture
def committed(transactional_db):
    """Rows are committed and visible to every connection; deleted afterwards."""
    yield
    empty_tables()
    for alias in ("default", "engine"):
        connections[alias].close()


@pytest.fixture(scope="session")
def service_bus(tmp_path_factory):
    """The peer of Service Bus of this test process, started when the first test asks for it."""
    with running_service_bus(tmp_path_factory.mktemp("servicebus")) as server:
        yield server


@pytest.fixture
def loop():
    """An event loop in a thread of its own, as a worker has it."""
    with loop_beside() as made:
        yield made


def _harness(request, loop):
    kind = HARNESSES[request.param]
    server = request.getfixturevalue(kind.server_fixture) if kind.server_fixture else None
    return kind(loop, server)


@pytest.fixture
def transport(request, committed, loop):
    """The harness of one transport."""
    made = _harness(request, loop)
    yield made
    made.close()


@pytest.fixture
def broker(request, committed, loop):
    """The harness of one transport that has a broker."""
    made = _harness(request, loop)
    yield made
    made.close()


@pytest.fixture
def posts(loop):
    """Makes posts: `posts(harness, {"default": 2})`; they are closed with the test."""
    made = []

    def make(harness, queues=None, **options):
        made.append(Post(loop, harness, queues or {"default": 4}, **options))
        return made[-1]

    yield make
    for post in made:
        post.close()


@pytest.fixture
def cable(committed):
    """The cable between the engine and PostgreSQL, which can be cut."""
    with Proxy(database_url()) as proxy, through(proxy, "engine"):
        yield proxy
