"""Stack traces: what the interpreter wrote is read whole, what is cut or hostile is shown as it is."""

import json
import traceback

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from dashboard.stacks import is_own, parse


def text_of(call):
    try:
        call()
    except BaseException as error:  # noqa: BLE001
        return "".join(traceback.format_exception(error))
    raise AssertionError("it did not raise")


def broken():
    json.loads("{")


def chained():
    try:
        broken()
    except ValueError as error:
        raise RuntimeError("the file\n\nis broken") from error


def endless():
    endless()


def test_the_newest_call_comes_first_and_frames_of_libraries_are_one_run():
    [block] = parse(text_of(broken)).blocks
    library, own = block.runs
    assert (library.own, own.own) == (False, True)
    assert library.frames[0].name == "raw_decode"
    assert own.frames[0].name == "broken"
    assert own.frames[0].code == 'json.loads("{")'
    assert own.frames[0].short == "dashboard/test_stacks.py"
    assert block.error.startswith("json.decoder.JSONDecodeError: Expecting")


def test_the_last_exception_comes_first_and_its_cause_below_it():
    last, first = parse(text_of(chained)).blocks
    assert (last.link, first.link) == ("", "cause")
    assert last.error == "RuntimeError: the file\n\nis broken"
    assert first.runs[-1].frames[-1].name == "chained"


def test_an_exception_while_another_was_handled_says_so():
    def handling():
        try:
            broken()
        except ValueError:
            raise KeyError("x")  # noqa: B904

    assert [block.link for block in parse(text_of(handling)).blocks] == ["", "context"]


def test_a_recursion_is_one_frame_that_says_how_often():
    frames = [frame for run in parse(text_of(endless)).blocks[0].runs for frame in run.frames]
    assert len(frames) < 10
    assert max(frame.repeated for frame in frames) > 100


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/srv/app/tasks/integration.py", True),
        ("tasks.py", True),
        (r"C:\app\tasks.py", True),
        ("/usr/lib/python3.13/json/decoder.py", False),
        ("/srv/venv/lib/python3.13/site-packages/httpx/_client.py", False),
        (r"C:\Python313\Lib\json\decoder.py", False),
        ("<frozen importlib._bootstrap>", False),
        ("<string>", False),
    ],
)
def test_own_code_is_what_is_neither_installed_nor_of_the_interpreter(path, own):
    assert is_own(path) is own


def test_the_engine_itself_is_a_library_and_what_stands_beside_it_is_own():
    assert not is_own(f"{settings.BASE_DIR}/workers/execution.py")
    assert is_own(f"{settings.BASE_DIR}/tarefas/integracao.py")


GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/app/x.py", line 1, in run
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: no
    +------------------------------------"""
CUT = 'Traceback (most recent call last):\n  File "/app/x.py", line 1, in run\n    a()\n…\nin b\nValueError: no'


@pytest.mark.parametrize(
    "text",
    [
        "no traceback at all",
        GROUP,
        CUT,
        "Traceback (most recent call last):",
        'Traceback (most recent call last):\n  File "/app/x.py", line 1, in run\n    a()',
        'Traceback (most recent call last):\n  File "/app/x.py", line many, in run\nValueError: no',
        "x\n" * 10_000,
    ],
)
def test_what_is_no_whole_traceback_is_shown_as_it_is(text):
    stack = parse(text)
    assert stack.blocks == ()
    assert stack.plain == text.rstrip()


@pytest.mark.parametrize("text", [None, "", " \n "])
def test_no_stack_is_nothing(text):
    assert not parse(text)


@given(
    st.lists(st.sampled_from([*CUT.split("\n"), "", "    ", *GROUP.split("\n"), "x: y"]), max_size=30).map("\n".join)
)
def test_no_text_makes_it_fail(text):
    stack = parse(text)
    assert bool(stack) == bool(text.strip()) or not stack.blocks


def test_it_is_shown_escaped_with_own_frames_marked_and_libraries_folded():
    text = text_of(broken).replace("json.loads(", "<script>(")
    html = render_to_string("dashboard/stack.html", {"stack": parse(text)})
    assert html.count('class="own"') == 2
    assert "<summary>" in html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_plain_stack_is_shown_escaped_and_whole():
    html = render_to_string("dashboard/stack.html", {"stack": parse("<b>cut\n…")})
    assert "&lt;b&gt;cut\n…" in html
