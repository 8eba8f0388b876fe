"""Static files looked for once in a test process, and not once for each browser of a test.

Each new `django.test.Client` makes the middleware anew, which looks at every file of the admin's and ours: that took
more than half of the time of a test with a request. What a web process does is tested on web processes.
"""

from servestatic.middleware import ServeStaticMiddleware

_look = ServeStaticMiddleware.add_files_from_finders
_found: dict[str, object] = {}


def _looked(middleware: ServeStaticMiddleware) -> None:
    if not _found:
        _look(middleware)
        _found.update(middleware.files)
    middleware.files.update(_found)


def look_once() -> None:
    """From here on."""
    ServeStaticMiddleware.add_files_from_finders = _looked  # type: ignore[method-assign]
