"""The verbs on real PostgreSQL. `rows` makes and reads rows by plain SQL, `edges` is the matrix as data."""

import pytest

# Committed rows, on the connections of the web and of the engine. `available_apps` spares the flush that Django would
# do after each test: our tables stand in a schema that it does not see, and `committed` empties them.
COMMITTED = pytest.mark.django_db(databases=["default", "engine"], transaction=True, available_apps=["jobs"])
