"""Which value holds: request, configuration by type, declaration, defaults."""

from dataclasses import replace

import pytest

from jobs.conf import overridden
from jobs.registry import catalogue, policy
from turno.handlers import job_type


@pytest.fixture
def declared():
    @job_type("policy.one", queue="reports", priority=2, timeout=60, max_attempts=3, backoff_base=5, backoff_cap=50)
    def handler(ctx): ...

    return catalogue.get("policy.one")


@pytest.fixture
def bare():
    @job_type("policy.bare")
    def handler(ctx): ...

    return catalogue.get("policy.bare")


def test_the_defaults_hold_where_nothing_is_declared(bare):
    found = policy(bare)
    assert (found.queue, found.priority, found.timeout, found.max_attempts) == ("default", 0, 600.0, 5)
    assert (found.retry.base, found.retry.factor, found.retry.cap, found.retry.jitter) == (15.0, 2.0, 900.0, 0.2)
    assert (found.immediate_retries, found.immediate_retry_delay, found.at_most_once) == (2, 0.5, False)


def test_the_configured_defaults_hold_for_what_is_not_declared(bare, declared):
    with overridden(resilience={"max_attempts": 7, "timeout": 30, "backoff_factor": 3, "immediate_retries": 0}):
        assert (policy(bare).max_attempts, policy(bare).timeout) == (7, 30.0)
        assert (policy(declared).max_attempts, policy(declared).timeout) == (3, 60.0)
        assert (policy(declared).retry.factor, policy(declared).immediate_retries) == (3.0, 0)


def test_the_declaration_goes_over_the_defaults(declared):
    found = policy(declared)
    assert (found.queue, found.priority, found.timeout, found.max_attempts) == ("reports", 2, 60.0, 3)
    assert (found.retry.base, found.retry.cap) == (5.0, 50.0)


def test_the_configuration_by_type_goes_over_the_declaration_value_by_value(declared):
    typed = {"queue": "critical", "priority": 0, "max_attempts": 9, "backoff_base": 0}
    with overridden(resilience={"types": {"policy.one": typed}}):
        found = policy(declared)
    assert (found.queue, found.priority, found.timeout, found.max_attempts) == ("critical", 0, 60.0, 9)
    assert (found.retry.base, found.retry.cap) == (0.0, 50.0)


def test_the_request_goes_over_everything(declared):
    with overridden(resilience={"types": {"policy.one": {"queue": "critical", "timeout": 5}}}):
        found = policy(declared, queue="own", priority=0, timeout=1.5, max_attempts=1)
    assert (found.queue, found.priority, found.timeout, found.max_attempts) == ("own", 0, 1.5, 1)


def test_at_most_once_allows_one_attempt_whatever_else_is_said():
    @job_type("policy.once", at_most_once=True)
    def handler(ctx): ...

    with overridden(resilience={"types": {"policy.once": {"max_attempts": 9}}}):
        found = policy(catalogue.get("policy.once"), max_attempts=4)
    assert (found.at_most_once, found.max_attempts, found.immediate_retries) == (True, 1, 0)


def test_a_type_that_has_no_handler_here_has_a_policy_by_its_name():
    with overridden(resilience={"types": {"elsewhere.only": {"queue": "far"}}}):
        found = policy("elsewhere.only", priority=1)
    assert (found.queue, found.priority, found.timeout, found.at_most_once) == ("far", 1, 600.0, False)


def test_a_policy_follows_the_configuration_and_a_handler_that_is_declared_again(declared):
    assert policy(declared).timeout == 60.0
    with overridden(resilience={"types": {"policy.one": {"timeout": 5}}}):
        assert policy(declared).timeout == 5.0
    assert policy(declared).timeout == 60.0
    assert policy(replace(declared, timeout=7.0)).timeout == 7.0
    assert policy("policy.one").timeout == 600.0
