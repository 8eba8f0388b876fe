"""What an answer of a server of locks leaves unsaid is no lock: one that is not about the keys is that of a fault."""

import pytest

from tests.locks.house import LONG, PREFIX, TIMEOUT, pair, until, worker
from tests.locks.test_unfit_servers import stranger, told
from workers.locks.base import LocksAway
from workers.locks.redis_nodes import Nodes
from workers.locks.scripts import EXTEND, RELEASE, TAKE

FIT = b"*1\r\n:2\r\n"  # what Redis says when both of two keys did as they were told: to all that a look asks for
WORDS = "does not do what Redis does"
ITEMS = [("a", "1"), ("b", "2"), ("c", "3")]


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        ([3], {}),
        ([2, 3, b"x"], {3: b"x"}),
        ([1, 1, None, 3, b"x"], {1: None, 3: b"x"}),
        ([0, 1, b"x", 2, b"y", 3, b""], {1: b"x", 2: b"y", 3: b""}),
    ],
)
def test_an_answer_names_what_failed_and_counts_the_others(answer, failed):
    assert TAKE.failed(3, answer) == failed
    for script in (EXTEND, RELEASE):
        assert script.failed(3, [answer[0], *answer[1::2]]) == dict.fromkeys(failed)


@pytest.mark.parametrize("script", [TAKE, EXTEND, RELEASE], ids=["take", "extend", "release"])
@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"OK",
        3,
        [],
        [0],
        [1],
        [4],
        [-1],
        [None],
        [b"3"],
        [[3]],
        [2, 3],
        [2, 0, b"x"],
        [2, 4, b"x"],
        [2, -1, b"x"],
        [2, b"3", b"x"],
        [2, None, b"x"],
        [3, 3, b"x"],
        [1, 3, b"x"],
        [1, 3, b"x", 3, b"x"],
        [2, 3, 7],
        [2, 3, [b"x"]],
        [1, 2, b"x", 3],
    ],
    ids=repr,
)
def test_an_answer_that_is_not_about_the_keys_is_none(script, answer):
    names_alone = script is not TAKE and answer == [2, 3]
    assert script.failed(3, answer) == ({3: None} if names_alone else None)


LINES = {
    "nothing": b"*0\r\n",
    "none did, and none is named": b"*1\r\n:0\r\n",
    "of another number of keys": b"*1\r\n:4\r\n",
    "a key that was not named": b"*3\r\n:2\r\n:4\r\n$1\r\nx\r\n",
    "cut off": b"*3\r\n:1\r\n:2\r\n$1\r\nx\r\n",
    "a word": b"+OK\r\n",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
async def test_a_server_that_says_no_such_thing_is_left_alone_and_nobody_holds_a_lock_there(line):
    with stranger(FIT) as server:
        async with worker([server.url], on_failure="defer") as locks:
            await until(lambda: not locks.problems(), "it passes for one")
            mine = [pair(), pair()]
            assert (await locks.acquire(mine)).held == {token for _job, token in mine}
            server.line = line
            with pytest.raises(LocksAway):
                await locks.acquire([pair() for _ in range(3)])
            await until(lambda: any(WORDS in error for error in told(locks)), "it is said")


@pytest.mark.parametrize("call", ["take", "extend", "release"])
async def test_each_call_has_no_answer_then_and_what_was_to_be_given_back_is_owed(call):
    with stranger(FIT) as server:
        nodes = Nodes([server.url], prefix=PREFIX, timeout=TIMEOUT)
        nodes.begin()
        try:
            await until(lambda: nodes.up == 1, "it passes for one")
            rest = () if call == "release" else (LONG,)
            assert await getattr(nodes, call)(ITEMS[:2], *rest) in ([["1", "2"]], [[True, True]])
            server.line = b"*1\r\n:0\r\n"
            assert await getattr(nodes, call)(ITEMS, *rest) == [None]
            assert [WORDS in error for error in nodes.faults().values()] == [True]
            assert list(nodes._nodes[0]._owed) == (ITEMS if call == "release" else [])
        finally:
            await nodes.close()
