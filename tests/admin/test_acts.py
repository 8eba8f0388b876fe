"""What is done in the admin: the same as by the API, told with how many and why not, logged under the user's name."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from tests.kit.people import signed_in
from tests.transitions import rows

pytestmark = pytest.mark.django_db
LIST = "/admin/jobs/job/"
LETTERS = "/admin/jobs/deadletter/"


def act(browser, path, action, *ids, **more):
    form = {"action": action, "_selected_action": [str(id_) for id_ in ids], "index": "0", **more}
    return browser.post(path, form, follow=True)


def said(response):
    return [str(message) for message in response.context["messages"]]


def letter(**columns):
    made = rows.make_job("Failed", **columns)
    rows.execute(
        "INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, fingerprint, attempts)"
        " VALUES (gen_random_uuid(), %s, 't', 'q', 'error', 'f', 1)", made.id,
    )  # fmt: skip
    return made, rows.select("SELECT id FROM turno.dead_letters WHERE job_id = %s", made.id)[0]["id"]


def test_cancelling_says_how_many_and_why_not_the_others(root):
    waiting, running, ended = rows.make_job(), rows.make_job("Processing"), rows.make_job("Succeeded")
    told = said(act(root, LIST, "cancel", waiting.id, running.id, ended.id))
    assert told == [
        "2 jobs cancelled or asked to stop.",
        "1: The job has already ended (Succeeded); there is nothing to cancel.",
    ]
    assert (rows.state(waiting.id), rows.state(running.id), rows.state(ended.id)) == (
        "Cancelled", "Processing", "Succeeded",
    )  # fmt: skip
    assert rows.job(running.id)["cancel_requested_by"] == "user:raiz"
    change = rows.select("SELECT actor FROM turno.job_state_changes WHERE job_id = %s", waiting.id)[0]
    assert change["actor"] == "user:raiz"


def test_acts_are_logged_by_row_and_only_where_something_was_done(root):
    waiting, ended = rows.make_job(), rows.make_job("Succeeded")
    act(root, LIST, "cancel", waiting.id, ended.id)
    entries = list(LogEntry.objects.values_list("user__username", "object_id", "change_message"))
    assert entries == [("raiz", str(waiting.id), "cancel")]


def test_requeueing_runs_failed_and_cancelled_jobs_again(root):
    failed, cancelled, rival = (
        rows.make_job("Failed"),
        rows.make_job("Cancelled"),
        rows.make_job("Failed", unique_key="k"),
    )
    rows.make_job(unique_key="k")
    told = said(act(root, LIST, "requeue", failed.id, cancelled.id, rival.id))
    assert told[0] == "2 jobs requeued."
    assert "holds this job's unique key" in told[1]
    assert [rows.state(made.id) for made in (failed, cancelled, rival)] == ["Enqueued", "Enqueued", "Failed"]


def test_only_finished_jobs_are_deleted(root):
    ended, waiting = rows.make_job("Succeeded"), rows.make_job()
    told = said(act(root, LIST, "erase", ended.id, waiting.id))
    assert told[0] == "1 job deleted."
    assert "Only a finished job can be deleted" in told[1]
    assert rows.job(ended.id) is None
    assert rows.state(waiting.id) == "Enqueued"


def test_dead_letters_are_requeued_and_discarded(root):
    (one, first), (two, second) = letter(), letter()
    assert said(act(root, LETTERS, "requeue", first)) == ["1 job requeued."]
    assert said(act(root, LETTERS, "discard", second)) == ["1 dead letter discarded."]
    assert (rows.state(one.id), rows.state(two.id)) == ("Enqueued", "Failed")
    resolved = rows.select("SELECT id, resolved_how, resolved_by FROM turno.dead_letters")
    assert {row["id"]: (row["resolved_how"], row["resolved_by"]) for row in resolved} == {
        first: ("requeued", "user:raiz"), second: ("discarded", "user:raiz"),
    }  # fmt: skip
    again = said(act(root, LETTERS, "discard", first, second))
    assert again[0] == "0 dead letters discarded."
    assert "already requeued or discarded" in again[1]


def test_one_row_s_page_has_the_acts_too(root):
    made = rows.make_job()
    path = f"{LIST}{made.id}/change/"
    assert b'value="cancel"' in root.get(path).content
    form = {"CHANGE_FORM-action": "cancel", "_selected_action": str(made.id)}
    response = root.post(path, form | {"index": "0", "action": "cancel"}, follow=True)
    assert response.status_code == 200
    assert rows.state(made.id) == "Cancelled"


@pytest.mark.parametrize("id_", ["nonsense", "", "1", "' OR 1=1 --"])
def test_what_is_no_id_is_left_out(root, id_):
    made = rows.make_job()
    assert act(root, LIST, "cancel", id_).status_code == 200
    assert rows.state(made.id) == "Enqueued"


def test_nothing_is_done_to_what_was_not_selected_by_hand(root):
    made, other = rows.make_job(), rows.make_job()
    act(root, LIST, "cancel", made.id, select_across="1")
    assert rows.state(other.id) == "Enqueued"
    act(root, LIST, "cancel", select_across="1")
    assert rows.state(other.id) == "Enqueued"


@pytest.mark.parametrize("action", ["delete_selected", "erase_all", "", "get_queryset", "__class__"])
def test_there_are_no_other_acts(root, action):
    made = rows.make_job("Succeeded")
    assert act(root, LIST, action, made.id).status_code == 200
    assert rows.state(made.id) == "Succeeded"


@pytest.mark.parametrize(("right", "may"), [("view_job", set()), ("change_job", {"cancel"}), ("delete_job", {"erase"})])
def test_each_act_takes_its_right(db, right, may):
    clerk = signed_in("clara", is_staff=True)
    user = get_user_model().objects.get(username="clara")
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_job", right]))
    for action, state in (("cancel", "Enqueued"), ("erase", "Succeeded")):
        made = rows.make_job(state)
        act(clerk, LIST, action, made.id)
        after = rows.job(made.id)
        assert (after is None or after["state"] != state) == (action in may), action


def test_a_post_without_the_form_s_token_does_nothing(db):
    strict = signed_in("raiz", strict=True, is_staff=True, is_superuser=True)
    made = rows.make_job()
    assert act(strict, LIST, "cancel", made.id).status_code == 403
    assert rows.state(made.id) == "Enqueued"
