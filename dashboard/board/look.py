"""One instant of the board, looked at by all viewers: its rows in order and their tags, worked out once."""

from dashboard.board import mosaic
from dashboard.board.layout import DETAIL, Row
from dashboard.board.layout import rows as in_order
from dashboard.board.seen import CELLS, ID, META, MOST_ROWS, Tags, short
from jobs.queries import Board


def short_id(row: Row) -> str:
    """What stands for a row's worker in the header."""
    return short(str(row.worker.id), ID)


class Look:
    """The rows of a board by what stands for their workers, in the order of the board."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.rows = {short_id(row): row for row in in_order(board.workers)[:MOST_ROWS]}
        self._now = board.as_of.timestamp()
        self._tags: dict[tuple[str, str], Tags] = {}

    def at(self, seconds: float | None) -> int:
        """An instant that is the same at each look, to the second; `seconds` from now, 0 for none."""
        return 0 if seconds is None else round(self._now + seconds)

    def tags(self, row: Row, density: str) -> Tags:
        """The tags of a row: equal as long as it shows the same but for its clocks."""
        key = (short_id(row), density)
        if row.gone:
            return self._detail(row) if density == DETAIL else self._mosaic(row)
        if key not in self._tags:
            self._tags[key] = self._detail(row) if density == DETAIL else self._mosaic(row)
        return self._tags[key]

    def _state(self, row: Row) -> tuple[object, ...]:
        worker = row.worker
        return (worker.state, row.gone, worker.busy, row.slots)

    def _mosaic(self, row: Row) -> Tags:
        job, state = row.worker.longest, self._state(row)
        longest = (job.id, job.attempt, job.stage) if job else None
        return Tags(short(repr((state, mosaic.codes(row))), CELLS), short(repr((state, longest)), META))

    def _detail(self, row: Row) -> Tags:
        state = self._state(row)
        cells: list[object] = [state]
        for seats in row.seats.values():
            for seat in seats:
                job = seat.job
                if job is None:
                    cells.append(seat.accepts)
                else:
                    told = (job.id.int, job.attempt, job.stage, job.progress, job.cancelling, job.started, job.slow)
                    cells.append((*told, self.at(job.returns_in)))
        return Tags(short(repr(cells), CELLS), short(repr((state, self.at(-row.worker.seen_ago))), META))


_latest: Look | None = None


def look(board: Board) -> Look:
    """The look at this board; the last one is kept, for the other viewers of the same instant."""
    global _latest  # noqa: PLW0603 - a memory of one
    found = _latest
    if found is None or found.board is not board:
        found = _latest = Look(board)
    return found
