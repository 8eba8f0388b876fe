"""What @job_type accepts, and what it says to everything else."""

import functools
from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, RootModel

from jobs.registry import catalogue, type_of
from turno.handlers import JobContext, RegistrationError, job_type


class Rows(BaseModel):
    rows: int = 1


class NumberList(RootModel[list[int]]):
    pass


def test_a_plain_function_is_described_by_its_docstring_and_runs_in_a_process():
    @job_type("plain.one", queue="reports", priority=3, timeout="2 min", max_attempts=4)
    def handler(ctx: JobContext, payload: Rows) -> int:
        """Counts rows.

        And more that the catalogue does not show.
        """
        return payload.rows

    found = catalogue.get("plain.one")
    assert found is type_of(handler)
    assert (found.summary, found.isolation, found.is_async, found.is_class) == ("Counts rows.", "process", False, False)
    assert (found.queue, found.priority, found.timeout, found.max_attempts) == ("reports", 3, 120.0, 4)
    assert found.payload_model is Rows
    assert found.module == __name__
    assert handler(None, Rows(rows=3)) == 3, "the function itself stays as it is"


def test_a_coroutine_runs_in_the_loop_and_a_plain_function_in_a_thread_by_choice():
    @job_type("kind.async")
    async def first(ctx): ...

    @job_type("kind.thread", isolation="thread")
    def second(ctx): ...

    assert (catalogue.get("kind.async").isolation, catalogue.get("kind.thread").isolation) == ("async", "thread")


def test_a_class_is_made_anew_for_each_execution():
    @job_type("kind.class")
    class Handler:
        """Sees itself once."""

        def __init__(self):
            self.seen = 0

        def run(self, ctx, payload: Rows):
            self.seen += 1
            return self.seen

    found = catalogue.get("kind.class")
    assert (found.is_class, found.is_async, found.payload_model) == (True, False, Rows)
    assert [found.call(None, Rows()) for _ in range(2)] == [1, 1]


async def test_a_class_may_have_an_async_run():
    @job_type("kind.async-class")
    class Handler:
        async def run(self, ctx, payload: Rows):
            return payload.rows

    found = catalogue.get("kind.async-class")
    assert (found.is_async, found.isolation) == (True, "async")
    assert await found.call(None, Rows(rows=9)) == 9


def test_a_subclass_of_a_handler_is_no_handler_by_itself():
    @job_type("kind.base")
    class Base:
        def run(self, ctx): ...

    class Child(Base): ...

    assert type_of(Base) is not None
    assert type_of(Child) is None


def test_a_class_does_not_take_the_docstring_of_its_base():
    class Base:
        """Not mine."""

        def run(self, ctx): ...

    @job_type("kind.undocumented")
    class Child(Base): ...

    assert catalogue.get("kind.undocumented").description == ""


def test_one_handler_may_serve_two_types():
    @job_type("two.b")
    @job_type("two.a")
    def handler(ctx): ...

    assert catalogue.get("two.a").target is catalogue.get("two.b").target is handler


@pytest.mark.parametrize(
    "annotation", [None, dict, Any, Mapping, dict[str, Any], Mapping[str, Any], "dict", "dict[str, Any]"]
)
def test_a_payload_that_is_any_object_is_not_validated(annotation):
    def handler(ctx, payload): ...

    if annotation is not None:
        handler.__annotations__["payload"] = annotation
    job_type("payload.any")(handler)
    found = catalogue.get("payload.any")
    assert found.payload_model is None
    assert found.parse({"anything": [1]}) == {"anything": [1]}
    assert found.schema() == {"type": "object"}


@pytest.mark.parametrize("annotation", [Rows, "Rows", Annotated[Rows, "note"], "Annotated[Rows, 'note']"])
def test_the_model_is_found_also_where_the_annotation_is_text(annotation):
    def handler(ctx, payload): ...

    handler.__annotations__["payload"] = annotation
    job_type("payload.model")(handler)
    assert catalogue.get("payload.model").payload_model is Rows


def test_only_the_annotation_of_the_payload_needs_to_be_known_here():
    @job_type("payload.elsewhere")
    def handler(ctx: "OnlyForTypeCheckers", payload: Rows) -> "AlsoNotHere": ...  # noqa: F821

    assert catalogue.get("payload.elsewhere").payload_model is Rows


def test_a_decorated_handler_shows_the_signature_of_the_one_that_it_wraps():
    def logged(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args) * 2

        return wrapper

    @job_type("payload.wrapped")
    @logged
    def handler(ctx, payload: "Rows"):
        return payload.rows

    found = catalogue.get("payload.wrapped")
    assert found.payload_model is Rows
    assert found.call(None, Rows(rows=4)) == 8


def test_parameters_after_the_payload_keep_their_defaults():
    @job_type("payload.more")
    def handler(ctx, payload: Rows, factor=10, *, extra=1):
        return payload.rows * factor + extra

    assert catalogue.get("payload.more").call(None, Rows(rows=2)) == 21


def test_a_plain_handler_that_returns_a_coroutine_is_told_to_be_async():
    async def later(): ...

    @job_type("kind.mixed", isolation="thread")
    def handler(ctx):
        return later()

    with pytest.raises(
        TypeError, match=r"kind\.mixed: a plain handler returned a coroutine; declare it with async def"
    ):
        catalogue.get("kind.mixed").call(None, {})


OPTIONS = [
    ({"queue": "Reports"}, "queue: expected 1 to 100 characters"),
    ({"queue": "dead-letter"}, "queue: expected .* not dead-letter"),
    ({"queue": "mail_error"}, "queue: expected .* not ending in _error"),
    ({"queue": 5}, "queue: expected"),
    ({"priority": 11}, "priority: expected a whole number from -10 to 10; got 11"),
    ({"priority": True}, "priority: expected a whole number"),
    ({"max_attempts": 0}, "max_attempts: expected a whole number from 1 to 100; got 0"),
    ({"max_attempts": "3"}, "max_attempts: expected a whole number"),
    ({"timeout": 0}, "timeout: expected more than 0 seconds"),
    ({"timeout": -1}, "timeout: expected a duration between"),
    ({"timeout": "soon"}, "timeout: expected a duration such as"),
    ({"timeout": float("nan")}, "timeout: expected a duration"),
    ({"backoff_base": -1}, "backoff_base: expected a duration"),
    ({"backoff_base": 60, "backoff_cap": 30}, r"backoff_cap: expected at least backoff_base \(60 s\); got 30"),
    ({"at_most_once": 1}, "at_most_once: expected True or False"),
    ({"private_output": "yes"}, "private_output: expected True or False"),
    ({"at_most_once": True, "max_attempts": 3}, "max_attempts: expected 1, since at_most_once is set; got 3"),
    ({"isolation": "fiber"}, 'isolation: expected "async", "thread" or "process"'),
    ({"isolation": "async"}, 'isolation: expected "thread" or "process", since the handler is plain def'),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_a_wrong_option_is_refused_by_name(options, message):
    def handler(ctx): ...

    with pytest.raises(RegistrationError, match=rf"handler: {message}") as refusal:
        job_type("wrong.option", **options)(handler)
    assert __name__ in str(refusal.value)
    assert isinstance(refusal.value, TypeError)
    assert catalogue.get("wrong.option") is None


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_coroutine_can_be_isolated_neither_in_a_thread_nor_in_a_process(isolation):
    async def handler(ctx): ...

    with pytest.raises(RegistrationError, match='isolation: expected "async", since the handler is async def'):
        job_type("wrong.isolation", isolation=isolation)(handler)


@pytest.mark.parametrize("name", ["", "Upper.case", "with space", "ação", "a" * 201, "slash/name", "line\n"])
def test_a_name_outside_its_alphabet_is_refused(name):
    def handler(ctx): ...

    with pytest.raises(RegistrationError, match=r"handler: name: expected 1 to 200 characters of a-z"):
        job_type(name)(handler)


def test_the_decorator_without_a_name_says_how_it_is_written():
    with pytest.raises(RegistrationError, match=r'expected the name of the type, as in @job_type\("reports\.daily"\)'):

        @job_type
        def handler(ctx): ...


def test_a_name_that_another_handler_has_is_refused_with_both_places():
    def first(ctx): ...

    def second(ctx): ...

    job_type("taken.name")(first)
    with pytest.raises(RegistrationError, match=r"second: the name 'taken\.name' belongs to .*first"):
        job_type("taken.name")(second)
    assert catalogue.get("taken.name").target is first


def test_a_second_function_of_the_same_name_in_one_module_is_refused_too():
    def make_first():
        def handler(ctx): ...

        return handler

    def make_second():
        def handler(ctx): ...

        return handler

    first, second = make_first(), make_second()
    second.__qualname__ = first.__qualname__
    job_type("taken.twice")(first)
    with pytest.raises(RegistrationError, match="belongs to"):
        job_type("taken.twice")(second)


def test_a_module_that_is_run_again_replaces_its_own_handlers():
    source = "from turno.handlers import job_type\n@job_type('again.run')\ndef handler(ctx): ...\n"
    for _ in range(2):
        exec(compile(source, "again.py", "exec"), {"__name__": "again"})  # noqa: S102
    assert catalogue.get("again.run").module == "again"
