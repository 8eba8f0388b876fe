"""Everything that can be wrong with a request, each with its field and its sentence."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.utils import translation

from jobs.conf import overridden
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.errors import Invalid, PayloadTooLarge, UnknownType
from jobs.models import Job
from tests.jobs.enqueue_types import registered

pytestmark = pytest.mark.django_db

PRINTABLE_200 = "Expected 1 to 200 printable characters."
QUEUE = "Expected 1 to 100 characters of a-z, 0-9, '.', '_' and '-'; not dead-letter, not ending in _error."
TYPE = "Expected 1 to 200 characters of a-z, 0-9, '.', '_' and '-'."
PRIORITY = "Expected a whole number from -10 to 10."
ATTEMPTS = "Expected a whole number from 1 to 100."
DELAY = "Expected 0 to 316224000 seconds."
TIMEOUT = "Expected more than 0 and at most 2592000 seconds."
INSTANT = "Expected an instant with its offset from UTC, such as 2026-01-31T12:00:00Z."
YEARS = "Expected an instant from 1970 to 9999."


@pytest.fixture(autouse=True)
def types():
    with registered(), translation.override("en"):
        yield
    assert not Job.objects.exists(), "a refused request stores nothing"


def errors_of(kind=Invalid, **request):
    with pytest.raises(kind) as caught:
        enqueue(**({"type": "test.any"} | request))
    assert type(caught.value) is kind
    return caught.value.errors


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        *(("type", value, TYPE) for value in ("", "A", "a b", "a" * 201, "a\n", "a\0", "é", 5, None, ["a"])),
        *(
            ("queue", value, QUEUE)
            for value in ("", "A", "a/b", "a" * 101, "a\n", "a\0", "dead-letter", "x_error", 5, b"a")
        ),
        *(("priority", value, PRIORITY) for value in (-11, 11, 1.0, "1", True, 10**400, float("nan"))),
        *(("max_attempts", value, ATTEMPTS) for value in (0, 101, -1, 2.0, "3", False)),
        *(("delay", value, DELAY) for value in (-1, -0.001, 316224001, float("nan"), float("inf"), "5", True, 10**400)),
        *(("timeout", value, TIMEOUT) for value in (0, -1, 2592001, float("nan"), float("inf"), "5", True, 10**400)),
        *(("run_at", value, INSTANT) for value in (datetime(2030, 1, 1), "2030-01-01T00:00:00Z", 5)),  # noqa: DTZ001
        ("run_at", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), YEARS),
        ("run_at", datetime.min.replace(tzinfo=timezone(timedelta(hours=3))), YEARS),
        ("run_at", datetime.max.replace(tzinfo=timezone(timedelta(hours=-3))), YEARS),
        *(
            ("unique_key", value, PRINTABLE_200)
            for value in ("", " ", "x" * 201, "a\0b", "a\nb", "\ud800", 5, b"a", True)
        ),
        *(("idempotency_key", value, PRINTABLE_200) for value in ("", "  ", "x" * 201, "a\0b", "\u202e", 5, ["a"])),
        *(("origin", value, PRINTABLE_200) for value in ("", "x" * 201, "a\0b", 5)),
        *(("tags", value, "Expected a list of text.") for value in ("abc", None, {"a"}, 5)),
        ("tags", ["x"] * 21, "Expected at most 20 tags."),
        *(("payload", value, "Expected an object.") for value in ([1], "x", 5, True, [])),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_field_that_cannot_be_used_is_named(field, value, message):
    assert errors_of(**{field: value}) == {field: [message]}


@pytest.mark.parametrize("tag", ["", " ", "x" * 101, "a\0b", "a\x1fb", "a\tb", 5, None])
def test_a_tag_that_cannot_be_used_is_named_by_its_index(tag):
    assert errors_of(tags=["good", tag]) == {"tags.1": ["Expected 1 to 100 printable characters."]}


def test_an_instant_and_a_delay_exclude_each_other():
    assert errors_of(run_at=datetime(2030, 1, 1, tzinfo=UTC), delay=5) == {"delay": ["Give run_at or delay, not both."]}


@pytest.mark.parametrize(
    ("request_", "kind", "field"),
    [
        ({"payload": {"a": "x" * 262_144}}, PayloadTooLarge, "payload"),
        ({"payload": {"a": {"b": "x\0"}}}, Invalid, "payload.a.b"),
        ({"payload": {"a": float("nan")}}, Invalid, "payload.a"),
        ({"payload": [1]}, Invalid, "payload"),
        ({"type": "Not a name"}, Invalid, "type"),
        ({"queue": "dead-letter"}, Invalid, "queue"),
        ({"max_attempts": 101}, Invalid, "max_attempts"),
    ],
    ids=["size", "NUL", "NaN", "no object", "its name", "queue", "attempts"],
)
def test_what_is_accepted_without_a_handler_is_held_to_all_that_needs_none(request_, kind, field):
    with overridden(api={"unknown_types": "accept"}):
        assert set(errors_of(kind, **({"type": "elsewhere.only"} | request_))) == {field}


def test_a_depth_is_limited_without_a_handler_too():
    nested: dict[str, Any] = {}
    for _ in range(70):
        nested = {"a": nested}
    with overridden(api={"unknown_types": "accept"}):
        errors = errors_of(type="elsewhere.only", payload=nested)
    [field] = errors
    assert field.startswith("payload")


def test_a_type_with_a_handler_is_validated_also_where_others_are_accepted():
    with overridden(api={"unknown_types": "accept"}):
        assert set(errors_of(type="test.report", payload={"rows": 0})) == {"payload.rows"}


def test_an_unknown_type_is_refused_with_the_nearest_names():
    errors = errors_of(UnknownType, type="test.repor")
    assert errors == {"type": ["There is no such job type; did you mean test.report, test.urgent, test.once?"]}
    with pytest.raises(UnknownType) as caught:
        enqueue("test.repor")
    assert caught.value.extra["nearest"] == ["test.report", "test.urgent", "test.once"]
    assert errors_of(UnknownType, type="zzz") == {"type": ["There is no such job type."]}


@pytest.mark.parametrize(
    ("payload", "errors"),
    [
        ({"rows": 0}, {"payload.rows": ["Expected at least 1."]}),
        ({"rows": "many"}, {"payload.rows": ["Expected a whole number."]}),
        ({"row": 5}, {"payload.row": ["There is no such field; did you mean rows?"]}),
        ({"detail": {}}, {"payload.detail.number": ["This field is required."]}),
        ({"detail": {"number": 1, "x": 2}}, {"payload.detail.x": ["There is no such field."]}),
        ({"kind": "medium"}, {"payload.kind": ["Expected one of 'short' or 'long'."]}),
        (
            {"rows": 1001, "name": "x" * 21},
            {"payload.rows": ["Expected at most 1000."], "payload.name": ["Expected at most 20 characters."]},
        ),
    ],
)
def test_a_payload_that_does_not_fit_its_type_is_refused_by_field(payload, errors):
    assert errors_of(type="test.report", payload=payload) == errors


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"a": "x\0y"}, "payload.a"),
        ({"a": {"k\0": 1}}, r"payload.a.k\x00"),
        ({"a": [float("nan")]}, "payload.a.0"),
        ({"a": float("inf")}, "payload.a"),
        ({"a": 10**400}, "payload.a"),
        ({"a": "\ud800"}, "payload.a"),
        ({"a": object()}, "payload.a"),
        ({1: 2}, "payload.1"),
    ],
)
def test_a_payload_that_json_or_the_database_does_not_have_is_refused_by_path(payload, field):
    assert list(errors_of(payload=payload)) == [field]


@pytest.mark.parametrize("levels", [65, 1000, 20_000])
def test_a_payload_nested_too_deeply_is_refused(levels):
    value: Any = 1
    for _ in range(levels - 1):
        value = [value]
    [(_field, messages)] = errors_of(payload={"a": value}).items()
    assert messages == ["Nested too deeply: at most 64 levels."]


@pytest.mark.parametrize("character", ["x", "😀"])
def test_a_payload_one_byte_over_the_limit_is_refused(character):
    room = 262_144 - len(b'{"a":""}')
    payload = {"a": character * (room // len(character.encode())) + "x" * (room % len(character.encode()) + 1)}
    errors = errors_of(PayloadTooLarge, payload=payload)
    assert errors == {"payload": ["Too large: at most 262144 bytes of UTF-8 JSON."]}
    with overridden(limits={"payload": 1024}):
        assert errors_of(PayloadTooLarge, payload={"a": "x" * 1017})


def test_all_that_is_wrong_is_said_at_once():
    errors = errors_of(type="test.report", payload={"rows": 0, "x": 1}, priority=11, queue="A", tags=[""])
    assert set(errors) == {"payload.rows", "payload.x", "priority", "queue", "tags.0"}


def test_a_batch_names_each_error_by_index_and_stores_nothing():
    good = JobRequest("test.report", {"rows": 1})
    bad = [JobRequest("test.report", {"rows": 0}), JobRequest("nothing.here"), JobRequest("test.any", priority=11)]
    with pytest.raises(Invalid) as caught:
        enqueue_many([good, bad[0], good, bad[1], bad[2], {"type": "test.any"}])
    assert type(caught.value) is Invalid
    assert caught.value.errors == {
        "1.payload.rows": ["Expected at least 1."],
        "3.type": ["There is no such job type."],
        "4.priority": [PRIORITY],
        "5": ["Expected a JobRequest."],
    }


@pytest.mark.parametrize(
    ("requests", "kind"),
    [
        ([JobRequest("nothing.here"), JobRequest("nor.here")], UnknownType),
        ([JobRequest("test.any", {"a": "x" * 300_000})], PayloadTooLarge),
        ([JobRequest("test.any", {"a": "x" * 300_000}), JobRequest("nor.here")], Invalid),
    ],
)
def test_a_batch_is_refused_by_the_kind_that_all_its_errors_share(requests, kind):
    with pytest.raises(kind) as caught:
        enqueue_many(requests)
    assert type(caught.value) is kind


@pytest.mark.parametrize("count", [0, 1001])
def test_a_batch_has_one_to_a_thousand_jobs(count):
    with pytest.raises(Invalid) as caught:
        enqueue_many([JobRequest("test.any")] * count)
    assert caught.value.errors == {"jobs": [f"Expected 1 to 1000 jobs, got {count}."]}


def test_a_batch_with_very_many_errors_names_the_first_hundred_and_counts_all():
    with pytest.raises(Invalid, match=r"^1000 fields are wrong: 0\.priority, 1\.priority, .*…$") as caught:
        enqueue_many([JobRequest("test.any", priority=11)] * 1000)
    assert len(caught.value.errors) == 100


def test_the_same_idempotency_key_twice_in_a_batch_is_refused_by_index():
    with pytest.raises(Invalid) as caught:
        enqueue_many([JobRequest("test.any", idempotency_key=key) for key in ("a", "b", "a")])
    assert caught.value.errors == {"2.idempotency_key": ["Job 0 of this batch has the same key."]}


def test_a_key_belongs_to_the_batch_or_to_its_jobs():
    with pytest.raises(Invalid) as caught:
        enqueue_many([JobRequest("test.any"), JobRequest("test.any", idempotency_key="a")], idempotency_key="b")
    assert caught.value.errors == {"1.idempotency_key": ["Give a key to the batch or to its jobs, not to both."]}
    with pytest.raises(Invalid) as caught:
        enqueue_many([JobRequest("test.any")], idempotency_key="\0")
    assert caught.value.errors == {"idempotency_key": [PRINTABLE_200]}


def test_the_exception_alone_says_which_field_and_why():
    with pytest.raises(Invalid, match=r"^priority: Expected a whole number from -10 to 10\.$"):
        enqueue("test.any", priority=11)


@pytest.mark.parametrize("value", [5, b"a", 10**400, ["a"], object(), "", "a\0", "\ud800", "x" * 201], ids=type)
@pytest.mark.parametrize("field", ["owner", "route", "request_hash"])
def test_what_binds_an_idempotency_key_is_text(field, value):
    assert errors_of(idempotency_key="K", **{field: value}) == {field: [PRINTABLE_200]}
    with pytest.raises(Invalid) as caught:
        enqueue_many([JobRequest("test.any")], idempotency_key="K", **{field: value})
    assert caught.value.errors == {field: [PRINTABLE_200]}


def test_a_route_is_needed():
    assert errors_of(route=None) == {"route": [PRINTABLE_200]}


@pytest.mark.parametrize("requests", [None, 5, JobRequest("test.any"), enqueue])
def test_a_batch_is_a_list(requests):
    with pytest.raises(Invalid) as caught:
        enqueue_many(requests)
    assert caught.value.errors == {"jobs": ["Expected a list."]}
