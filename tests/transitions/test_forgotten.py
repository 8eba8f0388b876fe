"""A session that has lost its prepared statements, unknown to its driver, costs one more try and nothing else."""

from uuid import uuid4

import pytest
from django.db import connections

from jobs import transitions
from tests.outbox.rows import lease
from tests.transitions import COMMITTED
from tests.transitions.edges import claimant
from tests.transitions.flow import search

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
SINGLE = {
    "search": lambda: search(1, using="engine"),
    "claim": lambda: transitions.claim([(uuid4(), uuid4(), 1)], **claimant(), using="engine"),
    "lease": lambda: lease(using="engine"),
    "confirm": lambda: transitions.confirm_outbox([1], lock_id=uuid4(), using="engine"),
    "paused": lambda: transitions.paused(["default"], using="engine"),
}
FORGET = {"by itself": "DISCARD ALL", "unseen by the driver": "DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$"}


@pytest.mark.parametrize("how", FORGET)
@pytest.mark.parametrize("what", SINGLE)
def test_a_statement_that_the_session_has_lost_is_prepared_anew(what, how):
    connections["engine"].close()
    for _ in range(8):
        SINGLE[what]()
    raw = connections["engine"].connection
    raw.execute(FORGET[how])
    SINGLE[what]()
    SINGLE[what]()
    assert connections["engine"].connection is raw
