"""Schemathesis over the whole OpenAPI document, bounded: what fits it is taken, what doesn't is refused, no 500."""

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from jobs import bulk, throttle
from jobs.api.app import api
from jobs.registry import catalogue
from tests.api.client import KEY

pytestmark = pytest.mark.slow

HEADERS = {"X-Turno-Key": KEY, "Host": "localhost"}
# Of these the document can't say all: a key may belong to another body already (422), a payload's own validators know
# more than its JSON schema (400), and so do a schedule's and a cursor's. A pause ends in the future, and its scope says
# what its value may be; a rate has bounds; some names of queues are the broker's own.
BEYOND = {"enqueueJob", "enqueueJobs", "putRecurringJob", "previewSchedule", "listRecurringJobs"}
BEYOND |= {"pause", "pauseQueue", "pauseJobType", "setJobTypeLimits", "setQueue"}
BOUNDED = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def document(clean_tables, monkeypatch):
    monkeypatch.setattr(throttle, "FAILURES_A_MINUTE", 10**9)  # some requests come with a wrong key on purpose
    # The types that other tests declare would make a document too large to draw cases from.
    catalogue.load()
    ours = {name: type_ for name, type_ in catalogue._types.items() if type_.module.startswith("turno.")}
    assert ours
    monkeypatch.setattr(catalogue, "_types", ours)
    monkeypatch.setattr(api, "_documents", {})
    yield schemathesis.openapi.from_wsgi("/openapi/v1.json", get_wsgi_application(), headers=HEADERS)
    bulk.crew.join()


def hold(operation, mode):
    """Try an operation with cases that fit its document, or that don't."""
    excluded = [positive_data_acceptance] if operation.definition.raw["operationId"] in BEYOND else []

    @BOUNDED
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case):
        case.call_and_validate(headers=HEADERS, excluded_checks=excluded)

    check()


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_operation_keeps_what_its_document_says(document, mode):
    tried = 0
    for found in document.get_all_operations():
        operation = found.ok()
        takes_nothing = not operation.body and not operation.query and not operation.path_parameters
        if takes_nothing and mode is GenerationMode.NEGATIVE:
            continue  # nothing of it can be wrong
        hold(operation, mode)
        tried += 1
    assert tried >= 9
