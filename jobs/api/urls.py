"""The API with its routes, ready to be mounted at the root."""

from jobs.api.app import api
from jobs.api.routes_acts import router as jobs
from jobs.api.routes_bulk import router as many
from jobs.api.routes_bulk import runs
from jobs.api.routes_flow import pauses
from jobs.api.routes_flow import router as flow
from jobs.api.routes_letters import router as letters
from jobs.api.routes_promises import router as promises
from jobs.api.routes_recurring import router as recurring
from jobs.api.routes_system import probes, scrapes
from jobs.api.routes_system import router as system

api.add_router("/api/jobs/bulk", many)  # before the jobs, whose ids could be read into its address
api.add_router("/api/jobs", jobs)
api.add_router("/api/bulk", runs)
api.add_router("/api/dead-letters", letters)
api.add_router("/api/recurring-jobs", recurring)
api.add_router("/api/pauses", pauses)
api.add_router("/api", promises)
api.add_router("/api", flow)
api.add_router("/api", system)
api.add_router("/health", probes)
api.add_router("/metrics", scrapes)

urls = api.urls
