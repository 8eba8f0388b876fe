"""The board as a page loads it, and afterwards what changed since: rows, their words, heads; nothing comes or leaves.

A worker that came or went is told in a line that loads the page again; a row that is shown stays, with its last state.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dashboard.board import detail, frame, mosaic
from dashboard.board.layout import DETAIL, Lane, Pool, Row, lanes, pools
from dashboard.board.links import Links, links
from dashboard.board.look import Look, look, short_id
from dashboard.board.seen import HEADS, LANES, Seen, Tags, short
from dashboard.board.speech import Speech, speech
from dashboard.fragments import seen_tag
from jobs.queries import Board, Depth

Gone = Callable[[], Iterable[Row]]


@dataclass(slots=True)
class Picture:
    """The board of one instant in one density: `shown` rows, and how many came or left since they were loaded."""

    look: Look
    depths: Sequence[Depth]
    density: str
    shown: list[Row]
    came: int = 0
    left: int = 0
    words: Speech = field(default_factory=speech)
    links: Links = field(default_factory=links)
    lanes: list[Lane] = field(init=False)
    pools: list[Pool] = field(init=False)

    def __post_init__(self) -> None:
        detailed = self.density == DETAIL
        self.lanes = lanes(self.shown, self.depths) if detailed else []
        self.pools = [] if detailed else pools(self.shown)

    def body(self) -> str:
        """All rows, or what to do when there is none."""
        if not self.shown:
            return frame.empty(self.depths)
        if self.density == DETAIL:
            return detail.table(self.shown, self.lanes, self.words, self.links)
        return mosaic.html(self.pools, self.words, self.links, self.paused)

    @property
    def paused(self) -> frozenset[str]:
        """The queues that are paused."""
        return frozenset(pause.value for pause in self.look.board.pauses if pause.scope == "queue")

    def heads(self) -> dict[str, str]:
        """What stands around the rows, by id."""
        found = {
            "quadro-resumo": frame.summary(self.look.board),
            "quadro-problemas": frame.troubles(sum(row.trouble for row in self.shown)),
            "quadro-novos": frame.offer(self.came, self.left),
            "quadro-perdidas": frame.strays(self.look.board.strays, self.links),
        }
        found |= {detail.head_id(lane.queue): detail.head(lane, self.links) for lane in self.lanes}
        for pool in self.pools:
            found[f"g-{mosaic.pool_id(pool)}"] = mosaic.pool_head(pool, self.words, self.paused)
        return found

    def row(self, row: Row) -> str:
        """One row whole."""
        if self.density == DETAIL:
            return detail.tr(row, self.lanes, self.words, self.links)
        return mosaic.line(row, self.words, self.links)

    def meta(self, row: Row) -> str:
        """The words of one row."""
        return detail.meta(row, self.words) if self.density == DETAIL else mosaic.reading(row, self.words)

    def seen(self, heads: dict[str, str]) -> Seen:
        """What a browser has that has all of this. The clocks in the heads count by the instants they began at."""
        oldest = [lane.depth.oldest_for if lane.depth is not None else None for lane in self.lanes]
        began = [self.look.at(None if age is None else -age) // 2 for age in oldest]
        return Seen(
            short(repr([(lane.queue, lane.width) for lane in self.lanes]), LANES),
            short(f"{seen_tag(''.join(heads.values()))}{began}", HEADS),
            {short_id(row): self.look.tags(row, self.density) for row in self.shown},
        )


def whole(board: Board, depths: Sequence[Depth], density: str) -> Picture:
    """The board as a page loads it."""
    seen = look(board)
    return Picture(seen, depths, density, list(seen.rows.values()))


def _partial(id_: str, html: str, swap: str = "outerMorph") -> str:
    return f'<hx-partial hx-target="#{id_}" hx-swap="{swap}">{html}</hx-partial>'


def _anew(board: Board, depths: Sequence[Depth], density: str) -> tuple[str, str]:
    """All of it. For an empty board, which nobody reads: its first workers just come. And for one whose columns are not
    those of now, because a worker was forgotten: its other rows could never change any more."""
    picture = whole(board, depths, density)
    heads = picture.heads()
    parts = [_partial(id_, html) for id_, html in heads.items() if id_.startswith("quadro-")]
    return "".join([_partial("quadro-corpo", picture.body(), "innerHTML"), *parts]), picture.seen(heads).header()


def changes(board: Board, depths: Sequence[Depth], density: str, has: Seen | None, gone: Gone) -> tuple[str, str]:
    """What a browser that has `has` needs, as partials, empty when it has all; and what it has afterwards.

    Without `has` every row of now is sent, for those that are on its page. `gone` gives the workers that are no longer
    on the board; it is asked only when a row is missing there.
    """
    seen = look(board)
    if has is not None and not has.rows and seen.rows:
        return _anew(board, depths, density)
    known = list(seen.rows) if has is None else list(has.rows)
    missing = [id_ for id_ in known if id_ not in seen.rows]
    last = {short_id(row): row for row in gone()} if missing else {}
    found = [seen.rows.get(id_) or last.get(id_) for id_ in known]
    came = len(seen.rows.keys() - set(known))
    picture = Picture(seen, depths, density, [row for row in found if row is not None], came, len(missing))
    heads = picture.heads()
    now = picture.seen(heads)
    if has is None:
        has = Seen(now.lanes, "", {})
    if has.lanes != now.lanes:
        return _anew(board, depths, density)
    parts = []
    if has.heads != now.heads:
        parts += [_partial(id_, html) for id_, html in heads.items()]
    parts += _rows(picture, has, now)
    kept = {id_: now.rows.get(id_) or has.rows[id_] for id_ in known}
    return "".join(parts), Seen(has.lanes, now.heads, kept).header()


def _rows(picture: Picture, has: Seen, now: Seen) -> Iterable[str]:
    """The rows that changed, or only their words where nothing else did."""
    for row in picture.shown:
        id_ = short_id(row)
        had, new = has.rows.get(id_, Tags("", "")), now.rows[id_]
        if had.cells != new.cells:
            yield _partial(f"w-{row.worker.id}", picture.row(row))
        elif had.meta != new.meta:
            yield _partial(detail.meta_id(row.worker.id), picture.meta(row))
