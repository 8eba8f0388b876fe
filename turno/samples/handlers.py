"""The samples, imported together; `jobs.loading` names this module, unless `samples.enabled` is false."""

from django.utils.translation import gettext_noop

from turno.samples.file_process import FileProcess
from turno.samples.integration_sync import synchronize
from turno.samples.notification_send import send_notification
from turno.samples.report_generate import generate_report

__all__ = ["DESCRIPTIONS", "PAYLOADS", "FileProcess", "generate_report", "send_notification", "synchronize"]

# The first lines of the four docstrings once more: translators' tools find messages in calls only.
DESCRIPTIONS = (
    gettext_noop("Computes a sales report and renders it as text, CSV and HTML."),
    gettext_noop("Counts, digests and transforms a text file."),
    gettext_noop("Renders a notification and masks whom it is for; nothing is sent."),
    gettext_noop("Walks the pages of a source and brings a local copy up to date."),
)
# And those of their payloads.
PAYLOADS = (
    gettext_noop("What to report on."),
    gettext_noop("Which text to process, and how."),
    gettext_noop("Whom to notify of what."),
    gettext_noop("Which source to synchronise."),
)
