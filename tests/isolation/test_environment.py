"""The C library's environment variables: put back by what is seen of their list alone."""

import ctypes
import os
from collections.abc import Callable, Iterator

import pytest

from workers.isolation.environment import Environment

LIBC = ctypes.CDLL(None)
LIBC.getenv.restype = ctypes.c_char_p


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    """A variable that both sides know; all are again as they were afterwards, whatever the test finds."""
    before = dict(os.environ)
    os.environ["ISO_KNOWN"] = "first"
    yield
    LIBC.clearenv()
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda: os.putenv("ISO_NEW", "x"), id="a new one"),
        pytest.param(lambda: os.putenv("ISO_KNOWN", "second"), id="another text of the same length"),
        pytest.param(lambda: os.unsetenv("ISO_KNOWN"), id="one less"),
        pytest.param(lambda: (os.unsetenv("ISO_KNOWN"), os.putenv("ISO_NEW", "x")), id="one for another"),
        pytest.param(LIBC.clearenv, id="none at all"),
    ],
)
def test_what_c_code_changed_is_put_back_each_time(change: Callable[[], object]) -> None:
    environment = Environment()
    for _ in range(2):
        change()
        assert (LIBC.getenv(b"ISO_KNOWN"), LIBC.getenv(b"ISO_NEW")) != (b"first", None)
        environment.put_back()
        assert (LIBC.getenv(b"ISO_KNOWN"), LIBC.getenv(b"ISO_NEW")) == (b"first", None)


def test_a_list_that_was_moved_is_looked_through_and_known_from_then_on() -> None:
    environment = Environment()
    for number in range(200):  # the library needs more room than it has
        os.putenv(f"ISO_MANY_{number}", "x")
    for number in range(200):
        os.unsetenv(f"ISO_MANY_{number}")
    environment.put_back()
    os.putenv("ISO_KNOWN", "second")
    environment.put_back()
    assert LIBC.getenv(b"ISO_KNOWN") == b"first"


def put(buffer: "ctypes.Array[ctypes.c_char]") -> None:
    """As C code does that keeps the text: from then on the library looks for it there."""
    assert LIBC.putenv(buffer) == 0


def test_a_text_that_c_code_has_lent_is_copied_even_where_it_changes_nothing() -> None:
    environment = Environment()
    lent = ctypes.create_string_buffer(b"ISO_KNOWN=first")
    put(lent)
    environment.put_back()
    lent.value = b"ISO_KNOWN=other"  # its owner may do this at any time
    environment.put_back()
    assert LIBC.getenv(b"ISO_KNOWN") == b"first"


def test_a_text_that_c_code_has_lent_is_copied_also_where_others_were_changed() -> None:
    environment = Environment()
    lent = ctypes.create_string_buffer(b"ISO_KNOWN=first")
    put(lent)
    os.putenv("ISO_NEW", "x")
    environment.put_back()
    assert LIBC.getenv(b"ISO_NEW") is None
    lent.value = b"ISO_KNOWN=other"
    assert LIBC.getenv(b"ISO_KNOWN") == b"first"


def test_a_text_that_was_lent_before_the_first_job_is_copied_too() -> None:
    lent = ctypes.create_string_buffer(b"ISO_KNOWN=first")
    put(lent)
    environment = Environment()
    lent.value = b"ISO_KNOWN=other"
    environment.put_back()
    assert LIBC.getenv(b"ISO_KNOWN") == b"first"


def test_a_name_that_is_there_twice_keeps_its_first_text() -> None:
    texts = [b"ISO_KNOWN=first", b"ISO_KNOWN=second", b"ISO_OTHER=x"]
    entries = (ctypes.c_char_p * (len(texts) + 1))(*texts)
    ctypes.c_void_p.in_dll(LIBC, "environ").value = ctypes.addressof(entries)
    environment = Environment()
    for _ in range(2):
        assert (LIBC.getenv(b"ISO_KNOWN"), LIBC.getenv(b"ISO_OTHER")) == (b"first", b"x")
        os.putenv("ISO_OTHER", "y")
        environment.put_back()
