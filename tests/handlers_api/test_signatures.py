"""Handlers of a shape that can't be called, and what @job_type says to each."""

import functools
from abc import ABC, abstractmethod

import pytest
from pydantic import BaseModel, RootModel

from jobs.registry import catalogue
from turno.handlers import RegistrationError, job_type


class Rows(BaseModel):
    rows: int = 1


class NumberList(RootModel[list[int]]):
    pass


def no_context(): ...


def three(ctx, payload, third): ...


def any_arguments(*args): ...


def keywords(ctx, **payload): ...


def keyword_only(ctx, *, payload): ...


def swapped(payload: Rows, ctx): ...


def number(ctx, payload: int): ...


def optional(ctx, payload: Rows | None): ...


def typed_dict(ctx, payload: dict[str, int]): ...


def bare_model(ctx, payload: BaseModel): ...


def root_model(ctx, payload: NumberList): ...


def unknown(ctx, payload: "Nowhere"): ...  # noqa: F821


def generator(ctx):
    yield 1


async def async_generator(ctx):
    yield 1


class WithoutRun: ...


class WithArguments:
    def __init__(self, database): ...

    def run(self, ctx): ...


class Abstract(ABC):
    @abstractmethod
    def run(self, ctx): ...


class Static:
    @staticmethod
    def run(ctx): ...


class WithoutContext:
    def run(self): ...


class Incomplete(BaseModel):
    later: "NotDefinedYet"  # noqa: F821


def incomplete(ctx, payload: Incomplete): ...


SIGNATURES = [
    (no_context, r"it takes no context; expected \(ctx\) or \(ctx, payload\)"),
    (three, "parameter 'third' would get no value"),
    (any_arguments, r"it takes \*args"),
    (keywords, r"it takes \*\*payload"),
    (keyword_only, "parameter 'payload' would get no value"),
    (swapped, "the first parameter, 'payload', gets the context, not the payload"),
    (number, "its payload is annotated int; expected"),
    (optional, r"its payload is annotated .*Rows \| None; expected"),
    (typed_dict, r"its payload is annotated dict"),
    (bare_model, "its payload is annotated BaseModel; expected a model with fields"),
    (root_model, "its payload is annotated NumberList; expected a model with fields"),
    (unknown, r"its payload is annotated 'Nowhere', which is not known here \(name 'Nowhere' is not defined\)"),
    (generator, r"it is a generator \(it contains yield\)"),
    (async_generator, r"it is a generator \(it contains yield\)"),
    (WithoutRun, r"expected a method run\(self, ctx, payload\)"),
    (WithArguments, r"a new one is made for each execution, without arguments \(missing .*'database'\)"),
    (Abstract, "it is abstract"),
    (Static, r"expected a method run\(self, ctx, payload\)"),
    (WithoutContext, "it takes no context"),
    (incomplete, "the fields of its payload Incomplete name types that are not defined yet"),
    (functools.partial(three, third=1), r"expected a function or a class with a method run"),
    (print, "expected a function or a class"),
]


@pytest.mark.parametrize(("target", "message"), SIGNATURES)
def test_a_handler_of_another_shape_is_refused_with_what_was_expected(target, message):
    with pytest.raises(RegistrationError, match=message) as refusal:
        job_type("wrong.shape")(target)
    assert getattr(target, "__qualname__", "partial") in str(refusal.value)
    assert catalogue.get("wrong.shape") is None
