import pytest
from django.utils import translation

from jobs.conf import conf
from tests.isolation.house import House


@pytest.fixture(autouse=True)
def language():
    """The default one, as in the pool's thread: a test before this one may have left another in this thread."""
    translation.deactivate()


@pytest.fixture
def house():
    """A forkserver and a pool; everything has ended afterwards."""
    made = House()
    yield made
    made.close()


@pytest.fixture
def house_with(monkeypatch):
    """The same, made with other settings of the section `worker`."""
    made = []

    def make(**worker):
        settings = conf()
        changed = settings.model_copy(update={"worker": settings.worker.model_copy(update=worker)})
        for module in ("child", "docket", "processes"):
            monkeypatch.setattr(f"workers.isolation.{module}.conf", lambda: changed)
        made.append(House())
        return made[-1]

    yield make
    for house in made:
        house.close()
