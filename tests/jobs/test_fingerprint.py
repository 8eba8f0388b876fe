"""One cause, one fingerprint: what varies in a message from case to case tells none apart, what names a cause does."""

import pytest

from jobs.fingerprint import KEPT, fingerprint, normalised

SAME = {
    "numbers": ("row 17 of 4,711.5 failed after 0:01:02", "row 3 of 9 failed after 12"),
    "instants": ("not before 2026-01-31T12:00:00Z", "not before 2027-11-02T08:30:15Z"),
    "uuids": ("job 01890a5d-ac96-774b-bcce-b302099a8057 is gone", "job 0198ffff-0000-7bbb-8ccc-0123456789ab is gone"),
    "hashes": ("commit abc1234 is unknown", "commit 99fe01d2c3b4a5968778695a4b3c2d1e0f112233 is unknown"),
    "tokens": ("key 01ARZ3NDEKTSV4RRFFQ69G5FAV expired", "key 7ZZZZ3NDEKTSV4RRAAQ69G5XYZ expired"),
    "addresses of memory": ("<Row object at 0x7f00aa> is bad", "<Row object at 0x55ffee1234> is bad"),
    "quoted": ("no column 'name'", "no column 'the date of birth'"),
    "doubly quoted": ('relation "a" does not exist', 'relation "b.c" does not exist'),
    "other quotes": ("relação «a» e `x` e “y”", "relação «b» e `zz` e “www”"),
    "with apostrophes": ("can't find 'abc' in 'def', it isn't there", "can't find 'x y' in 'z', it isn't there"),
    "json": ('{"a": "b", "c": 1} is no row', '{"x": "yy", "z": 22} is no row'),
    "urls": ("GET https://a.example/x?y=1 failed", "GET http://b.example:8080/z#w failed"),
    "quoted urls": ("GET 'https://a.example/x' said 'no'", "GET 'https://b.example/yy' said 'never'"),
    "urls in brackets": ("failed (https://a.example/x)", "failed (https://b.example/y/z)"),
    "e-mail addresses": ("no mailbox a.b+c@x.example.com", "no mailbox someone@y.example"),
    "hosts and ports": ("10.0.0.1:5432 refused", "192.168.100.2:1 refused"),
    "paths": ("can't read /srv/in/a.csv now", "can't read /var/x-y/../b-3.csv now"),
    "paths of windows": (r"can't read C:\Users\ana\a.txt now", r"can't read D:\in\b.txt now"),
    "paths at home": ("can't read ~/a/b.txt now", "can't read ~/c/d/e.txt now"),
    "white space": ("two\n lines", "two lines"),
    "cut in a quotation": (f"no JSON: '{'a' * 5000}", f"no JSON: '{'bc ' * 2000}"),
    "cut by the worker": (f"no JSON: '{'a' * 3989}…", f"no JSON: '{'b ' * 1994}…"),
    "after a long quotation": (f"'{'a' * 600}' is no row", "'b' is no row"),
}
DIFFERENT = {
    "words": ("no such file", "no such folder"),
    "after an apostrophe": ("can't read: disk full", "can't read: no permission"),
    "after an inch": ('a 5" disk is full', 'a 5" disk is missing'),
    "words of hexadecimal letters": ("facade failed", "decade failed"),
    "long names": ("get_customer_by_number failed", "get_invoice_by_number failed"),
    "and, or": ("and/or is wrong", "yes/no is wrong"),
    "after a url": ("GET https://a.example/x said no", "GET https://a.example/x said nothing"),
    "after a quotation that was opened and not closed": ("“no file “a”", "“no folder “a”"),
    "the same in guillemets": ("«no file «a»", "«no folder «a»"),
    "kinds": ("key 'a'", "key 1"),
}


@pytest.mark.parametrize("case", SAME)
def test_what_varies_tells_no_causes_apart(case):
    one, other = SAME[case]
    assert normalised(one) == normalised(other)
    assert fingerprint("t", "E", one, "m:f") == fingerprint("t", "E", other, "m:f")


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_names_a_cause_tells_it_apart(case):
    one, other = DIFFERENT[case]
    assert normalised(one) != normalised(other)


def test_type_class_message_and_frame_each_tell_causes_apart():
    whole = ("t", "E", "a message", "m:f")
    prints = {fingerprint(*whole)}
    for place in range(4):
        prints.add(fingerprint(*(f"{part}x" if n == place else part for n, part in enumerate(whole))))
    assert len(prints) == 5
    assert all(len(print_) == 32 for print_ in prints)


@pytest.mark.parametrize("text", ["", "\x00", "\ud800", "'", "…", "/", "\\" * 10])
def test_any_text_has_a_fingerprint(text):
    assert len(fingerprint("t", "E", text)) == 32


@pytest.mark.parametrize(
    "piece",
    ["a.", "a", "@", "1a", "'", '"', " '", "/", "/a", "a/", "a1-", "aaaaaaa-", "ab://", "0", "f", "x@", "x@y.", "\\a"],
)
def test_no_message_makes_it_slow(piece):
    """Each pattern reads a message a bounded number of times: this takes milliseconds, and would take hours."""
    assert len(normalised(piece * (1_000_000 // len(piece)))) <= KEPT
