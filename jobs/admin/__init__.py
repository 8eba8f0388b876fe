"""Django's admin over the tables: everything can be read, little can be done, and that by the API's functions.

Only the house's addresses import it: a worker never loads it.
"""

from jobs.admin import cluster, flow, history, jobs, letters, people, promises
from jobs.admin.site import site

__all__ = ["cluster", "flow", "history", "jobs", "letters", "people", "promises", "site"]
