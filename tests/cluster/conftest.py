"""Here every fleet works in the cluster profile."""

import pytest


@pytest.fixture
def profile():
    return "cluster"
