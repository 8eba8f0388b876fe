"""No body whatsoever gives a 500; what is refused is a problem that says why."""

import json

import pytest

from jobs.conf import overridden
from tests.transitions import rows

pytestmark = pytest.mark.django_db

BROKEN = {
    "cut off": b'{"a":',
    "single quotes": b"{'a':1}",
    "trailing comma": b"[1,]",
    "two documents": b'{"type": "test.any"} {}',
    "text": b'"x"',
    "number": b"1",
    "null": b"null",
    "array": b"[]",
    "invalid UTF-8": b'{"type": "test.any", "payload": {"a": "\xff"}}',
    "UTF-16 with a mark": '{"type": "test.any"}'.encode("utf-16"),
    "UTF-8 with a mark": b'\xef\xbb\xbf{"type": "test.any"}',
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00C\xbf\xa6\xa3\x02\x00\x00\x00",
    "empty": b"",
    "blank": b"  \n ",
    "NaN": b'{"type": "test.any", "payload": {"x": NaN}}',
    "Infinity": b'{"type": "test.any", "payload": {"x": Infinity}}',
    "-Infinity": b'{"type": "test.any", "payload": {"x": -Infinity}}',
    "1e400": b'{"type": "test.any", "payload": {"x": 1e400}}',
    "NUL in a value": b'{"type": "test.any", "payload": {"a": "x\\u0000y"}}',
    "NUL in a key": b'{"type": "test.any", "payload": {"a\\u0000": 1}}',
    "half a surrogate pair": b'{"type": "test.any", "payload": {"a": "\\ud800"}}',
    "20000 arrays": b'{"type": "test.any", "payload": {"a": ' + b"[" * 20_000 + b"]" * 20_000 + b"}}",
    "20000 objects": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "20000 arrays, not closed": b"[" * 20_000,
    "1000 levels": b'{"type": "test.any", "payload": {"a": ' + b"[" * 1000 + b"]" * 1000 + b"}}",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_body_is_a_400_and_stores_nothing(api, name):
    problem = api.send(BROKEN[name]).problem(400)
    assert problem["errors"]
    assert not rows.select("SELECT 1 FROM turno.jobs")


@pytest.mark.parametrize("path", ["/api/jobs/batch", "/api/jobs/01890a5d-ac96-774b-bcce-b302099a8057/cancel"])
@pytest.mark.parametrize("name", ["cut off", "invalid UTF-8", "20000 arrays, not closed", "text", "NaN"])
def test_a_broken_body_is_a_400_on_the_other_routes_too(api, path, name):
    api.ask("POST", path, BROKEN[name], "application/json").problem(400)


@pytest.mark.parametrize("number", [-0.0, 1e308, 5e-324, 2**63, 2**200, 0.1])
def test_a_number_comes_back_as_it_was_sent(api, number):
    job = api.get(f"/api/jobs/{api.enqueue(payload={'x': number})}").json
    assert job["payload"]["x"] == number


def test_a_payload_nested_up_to_the_limit_is_kept(api):
    value: object = 1
    for _ in range(63):
        value = [value]
    job = api.get(f"/api/jobs/{api.enqueue(payload={'x': value})}").json
    assert job["payload"]["x"] == value
    api.post("/api/jobs", {"type": "test.any", "payload": {"x": [value]}}).problem(400)


@pytest.mark.parametrize("letter", ["a", "😀"])
def test_a_payload_may_have_exactly_its_limit_in_bytes(api, letter):
    size = len(letter.encode())
    fill = letter * ((2048 - len('{"x":""}')) // size)
    raw = json.dumps({"type": "test.any", "payload": {"x": fill}}, ensure_ascii=False)
    longer = json.dumps({"type": "test.any", "payload": {"x": fill + letter}}, ensure_ascii=False)
    with overridden(limits={"payload": 2048}):
        answer = api.send(raw)
        assert answer.status == 201
        assert rows.job(answer.json["id"])["payload"]["x"] == fill
        api.send(longer).problem(413)


def test_a_request_over_its_limit_is_a_413(api):
    body = b'{"type": "test.any", "payload": {"x": "' + b"a" * 3000 + b'"}}'
    with overridden(limits={"request": 2048, "payload": 1024}):
        problem = api.send(body).problem(413)
        assert problem["limit"] == 2048


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                     "application/json; charset=utf-16", "application/xml", "application/jsonx", ";"],
)  # fmt: skip
def test_another_content_type_is_a_415(api, content_type):
    api.send(b'{"type": "test.any"}', content_type).problem(415)


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "application/json;charset=UTF-8"])
def test_the_charset_may_be_named(api, content_type):
    assert api.send(b'{"type": "test.any"}', content_type).status == 201
