"""PostgreSQL as the models need it, READ COMMITTED: rows, transactions that keep their writes until commit, row locks.

Rows stand in the state under their names. Of each row `lock of ROW` is who holds it: None, a name, or the frozen set of
those that share it. Of each who `writes of WHO` is what only he sees. A statement that reads before it waits is two
steps of a model: what its snapshot saw, and the row as it is when the lock has come.
"""

from collections.abc import Iterable
from typing import Any

from tests.model.checker import State

LOCK, WRITES = "lock of ", "writes of "


def database(rows: Iterable[str], who: Iterable[str]) -> State:
    """The variables for these rows and those who change them."""
    return {f"{LOCK}{row}": None for row in rows} | {f"{WRITES}{name}": () for name in who}


def read(now: State, who: str, row: str) -> Any:
    """The row as `who` sees it: his own write, or what is committed."""
    for name, value in now[WRITES + who]:
        if name == row:
            return value
    return now[row]


def free(now: State, who: str, row: str, *, shared: bool = False) -> bool:
    """Whether `who` gets the lock now, and needs not wait for another."""
    held = now[LOCK + row]
    if held is None or held == who:
        return True
    return isinstance(held, frozenset) and (shared or held == {who})


def lock(after: State, who: str, *rows: str, shared: bool = False) -> State:
    """Take locks, in a state of one's own; gives it back."""
    for row in rows:
        held = after[LOCK + row]
        if not shared:
            after[LOCK + row] = who
        elif held != who:
            after[LOCK + row] = (held or frozenset()) | {who}
    return after


def write(after: State, who: str, row: str, value: Any) -> State:
    """Lock the row and write it, for nobody else to be seen before the commit."""
    lock(after, who, row)
    others = [pair for pair in after[WRITES + who] if pair[0] != row]
    after[WRITES + who] = tuple(sorted([*others, (row, value)], key=lambda pair: pair[0]))
    return after


def end(after: State, who: str, *, commit: bool = True) -> State:
    """COMMIT, or ROLLBACK: the writes are everybody's or nobody's, the locks are free."""
    if commit:
        for row, value in after[WRITES + who]:
            after[row] = value
    after[WRITES + who] = ()
    for name, held in after.items():
        if name.startswith(LOCK):
            if held == who:
                after[name] = None
            elif isinstance(held, frozenset) and who in held:
                after[name] = (held - {who}) or None
    return after


def deadlock(now: State) -> str | None:
    """Who holds what, where somebody waits for ever."""
    held = {name.removeprefix(LOCK): who for name, who in now.items() if name.startswith(LOCK) and who is not None}
    return (
        f"all wait for each other: {', '.join(f'{row} held by {who}' for row, who in held.items())}" if held else None
    )
