"""Limits of JSON values, their text, their hash, and the strict parser."""

import json
import random
from contextlib import suppress

import pytest
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import Invalid, PayloadTooLarge
from jobs.jsonvalues import DEEPEST, LARGEST, JsonProblem, canonical_hash, encode, has_long_number, loads
from jobs.transitions import seats

ROOMY = {"depth": 64, "max_bytes": 262_144}

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-LARGEST, LARGEST)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=30)


@pytest.fixture(autouse=True)
def english():
    with translation.override("en"):
        yield


def problem_of(value, **limits):
    with pytest.raises(JsonProblem) as caught:
        encode(value, **(ROOMY | limits))
    return caught.value


def nested(levels, make):
    value = make(1)
    for _ in range(levels - 1):
        value = make(value)
    return value


@given(values)
def test_every_json_value_survives_its_own_text(value):
    assert loads(encode(value, **ROOMY)) == value


@given(values)
def test_the_text_is_what_pythons_own_parser_reads(value):
    assert json.loads(encode(value, **ROOMY)) == value


@given(st.dictionaries(texts, scalars | st.lists(scalars, max_size=3), max_size=6), st.randoms(use_true_random=False))
def test_the_hash_ignores_key_order_and_white_space(value, rng):
    keys = list(value)
    rng.shuffle(keys)
    other = json.dumps({key: value[key] for key in keys}, indent=3, ensure_ascii=False).encode()
    assert canonical_hash(loads(other)) == canonical_hash(value)


def test_the_hash_tells_different_values_apart():
    different = [{}, {"a": 1}, {"a": 2}, {"a": "1"}, {"b": 1}, {"a": None}, {"a": [1]}, {"a": {"b": 1}}, {"a": 2**64}]
    assert len({canonical_hash(value) for value in different}) == len(different)


@given(st.binary() | texts.map(str.encode))
def test_the_parser_answers_any_bytes_with_a_value_or_a_refusal(raw):
    with suppress(Invalid, JsonProblem):
        encode(loads(raw), depth=DEEPEST, max_bytes=10**6)


@given(
    st.recursive(
        scalars | st.floats() | st.text() | st.integers() | st.binary() | st.complex_numbers() | st.dates(),
        lambda inner: (
            st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner)
        ),
        max_leaves=10,
    )
)
def test_any_python_value_is_encoded_or_refused_with_its_path(value):
    found = None
    try:
        loads(encode(value, **ROOMY))
    except JsonProblem as problem:
        found = problem
    assert found is None or (found.message and found.path.isprintable())


@pytest.mark.parametrize("number", [-0.0, 1e308, 5e-324, 2**63, 2**64, -(2**200), LARGEST, 0.1])
def test_numbers_within_a_double_are_kept_exactly(number):
    assert loads(encode({"x": number}, **ROOMY)) == {"x": number}


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ({"a": {"b": ["x", "y\0z"]}}, "a.b.1", "Text with a NUL character can't be stored."),
        ({"a\0b": 1}, r"a\x00b", "Text with a NUL character can't be stored."),
        ("\0", "", "Text with a NUL character can't be stored."),
        ({"a": "\ud83d"}, "a", "Text with half of a surrogate pair is not valid Unicode."),
        ({"\ud83d": 1}, r"\ud83d", "Text with half of a surrogate pair is not valid Unicode."),
        ({"a": [1.0, float("nan")]}, "a.1", "NaN and Infinity are not JSON numbers."),
        ([float("-inf")], "0", "NaN and Infinity are not JSON numbers."),
        ({"a": LARGEST + 1}, "a", "The number is too large: at most ±1.8e308."),
        ({"a": -(10**5000)}, "a", "The number is too large: at most ±1.8e308."),
        ({"a": {1: 2}}, "a.1", "A key must be text, not int."),
        ({None: 2}, "None", "A key must be text, not NoneType."),
        ({"a": [object()]}, "a.0", "object is not a JSON value."),
        ({"a": b"x"}, "a", "bytes is not a JSON value."),
        ({"a": {1}}, "a", "set is not a JSON value."),
        (1j, "", "complex is not a JSON value."),
    ],
)
def test_what_json_does_not_have_is_refused_with_its_path(value, path, message):
    problem = problem_of(value)
    assert (problem.path, problem.message) == (path, message)


@pytest.mark.parametrize("make", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: (inner,)])
def test_nesting_is_allowed_to_the_limit_and_refused_beyond_it_however_deep(make):
    assert encode(nested(64, make), **ROOMY)
    assert encode(nested(500, make), depth=500, max_bytes=10_000)
    for levels in (65, 1000, 20_000):
        assert problem_of(nested(levels, make)).message == "Nested too deeply: at most 64 levels."


def test_a_value_that_contains_itself_is_refused():
    knot: list[object] = []
    knot.append(knot)
    assert problem_of(knot).message == "Nested too deeply: at most 64 levels."


def test_shared_lists_that_would_multiply_are_refused_by_their_size():
    bomb: list[object] = [1]
    for _ in range(50):
        bomb = [bomb, bomb]
    assert problem_of(bomb).too_large


@pytest.mark.parametrize("character", ["x", "é", "😀"])
def test_the_size_is_that_of_the_utf8_text_to_the_byte(character):
    limit = 4096
    room = limit - len(b'{"a":""}')
    width = len(character.encode())
    fits = {"a": character * (room // width) + "x" * (room % width)}
    assert len(encode(fits, depth=8, max_bytes=limit)) == limit
    assert len(encode({"a": fits["a"][1:]}, depth=8, max_bytes=limit)) == limit - width
    problem = problem_of({"a": fits["a"] + "x"}, max_bytes=limit)
    assert problem.message == "Too large: at most 4096 bytes of UTF-8 JSON."
    assert isinstance(problem.refusal("payload"), PayloadTooLarge)


def test_a_refusal_names_the_field_under_its_root():
    refusal = problem_of({"rows": [1, float("nan")]}).refusal("3.payload")
    assert refusal.errors == {"3.payload.rows.1": ["NaN and Infinity are not JSON numbers."]}
    assert refusal.status == 400


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "The body is empty; expected JSON."),
        (b" \n", "The body is empty; expected JSON."),
        (b"\xef\xbb\xbf{}", "The body begins with a byte order mark; expected UTF-8 without one."),
        ('{"a": 1}'.encode("utf-16"), "The body begins with a byte order mark; expected UTF-8 without one."),
        (b'{"a":"\xff"}', "The body is not valid UTF-8."),
        (b'"\xed\xa0\x80"', "The body is not valid UTF-8."),
        (b'{"x":NaN}', "NaN and Infinity are not JSON numbers (line 1, column 6)."),
        ('{"é":-Infinity}'.encode(), "NaN and Infinity are not JSON numbers (line 1, column 7)."),
        (b'{"x":Infinity}', "NaN and Infinity are not JSON numbers (line 1, column 6)."),
        (b'{"x":1e400}', "A number is too large (line 1, column 6)."),
        (b"[" + b"9" * 400 + b"]", "A number is too large (line 1, column 2)."),
        (b"{} {}", "More than one JSON document (line 1, column 4)."),
        (b'{"a":', "Not valid JSON (line 1, column 6)."),
        (b"{'a':1}", "Not valid JSON (line 1, column 2)."),
        (b"[1,]", "Not valid JSON (line 1, column 3)."),
        (b'{\n "a": "\\ud800"}', "Not valid JSON (line 2, column 8)."),
        (b"[" * 20_000 + b"]" * 20_000, "The body is nested too deeply."),
        (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, "The body is nested too deeply."),
    ],
)
def test_the_parser_says_in_one_sentence_what_is_wrong(raw, message):
    with pytest.raises(Invalid) as caught:
        loads(raw)
    assert caught.value.errors == {"body": [message]}


@pytest.mark.parametrize("raw", [b'{"x":-Infinity}', b"-", b"nul", b"\x00", b"\xff\xfe", b'"\x01"', b"[NaN]"])
def test_other_malformed_bodies_are_refused_too(raw):
    with pytest.raises(Invalid):
        loads(raw)


def test_the_last_of_two_equal_keys_holds():
    assert loads(b'{"a":1,"a":2}') == {"a": 2}


def test_long_whole_numbers_keep_their_digits():
    number = random.Random(7).getrandbits(900)
    assert loads(b'{"a":%d,"b":1.5}' % number) == {"a": number, "b": 1.5}


@pytest.mark.parametrize("digits", [1, 18, 19, 20, 37, 38])
def test_nineteen_digits_in_a_row_are_found_wherever_they_stand(digits):
    for before in range(39):
        for after in (0, 1, 18, 19):
            text = "x" * before + "1234567890" * 4
            text = text[: before + digits] + "x" * after
            assert has_long_number(text) is has_long_number(text.encode()) is (digits >= 19), (before, after)


@pytest.mark.parametrize("before", range(19))
def test_digits_that_are_interrupted_are_no_row(before):
    for cut in range(1, 36):
        row = "9" * min(cut, 18) + "." + "9" * min(36 - cut, 18)
        assert not has_long_number("x" * before + row + "x" * 19)
        assert not has_long_number(("x" * before + row).encode())


def test_only_ascii_digits_make_numbers():
    foreign = "\u0663" * 40 + "\uff11" * 40 + "²" * 40
    assert not has_long_number(foreign)
    assert not has_long_number(foreign.encode())
    assert not has_long_number("7" * 18 + "\u0667" + "7" * 18)
    assert not has_long_number("\ud800" * 40), "halves of characters are no reason to fail"
    assert has_long_number(foreign + "7" * 19 + foreign)


@pytest.mark.parametrize("number", [10**18, 10**19 - 1, -(10**19) + 1, 2**64, -(2**63) - 1, 10**40])
def test_a_claimed_payload_has_its_whole_numbers_exactly_wherever_they_stand(number):
    for before in range(19):
        value = {"x" * before: ["é" * before, number]}
        assert seats.payload(encode(value, **ROOMY).decode()) == value
        assert loads(encode(value, **ROOMY)) == value
