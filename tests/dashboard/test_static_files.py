"""Static files in this process: looked for once (`tests.kit.static_files`), served to each browser alike."""

from django.test import Client


def served(path):
    """Status, and the bytes."""
    answer = Client().get(path)
    return answer.status_code, b"".join(answer) if answer.streaming else answer.content


def test_each_browser_is_served_the_same_files_ours_and_the_admins_and_nothing_that_is_none(db):
    for path in ("/static/css/base.css", "/static/admin/css/base.css"):
        first, second = served(path), served(path)
        assert first == second
        assert first[0] == 200
        assert len(first[1]) > 1000
    assert served("/static/css/nothing.css")[0] == 404
