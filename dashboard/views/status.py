"""The first page: is all well, who works, what waits, what ran last, and what to try."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.views.guard import signed_in
from jobs import access, health, queries
from jobs.version import VERSION

LAST_JOBS = 8


@require_safe
@signed_in
def home(request: HttpRequest) -> HttpResponse:
    """The status page."""
    reports = health.check_all()
    if not all(report.ok for report in reports):
        return render(request, "dashboard/status.html", {"version": VERSION, "reports": reports}, status=503)
    workers = queries.workers()
    stats = queries.stats()
    live = [worker for worker in workers if worker.live]
    shown = [worker for worker in workers if worker.state != "Offline"]
    context = {
        "version": VERSION,
        "reports": reports,
        "stats": stats,
        "waiting": stats.scheduled - stats.parked,
        "queued": stats.enqueued + stats.parked,
        "workers": shown,
        "broken": queries.broken_modules(shown),
        "stuck": queries.stuck_handlers(shown),
        "stopped": len(workers) - len(shown),
        "live": len(live),
        "silent": sum(worker.state == "Silent" for worker in shown),
        "slots": sum(worker.slots for worker in live if worker.state == "Online"),
        "jobs": queries.page(queries.JobFilter(), size=LAST_JOBS).items,
        "open_house": access.mode(request) is access.Mode.OPEN,
        "address": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "dashboard/status.html", context)
