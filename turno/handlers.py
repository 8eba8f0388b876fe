"""The public door of handler modules: what one needs to declare job types and to write their handlers.

```python
from pydantic import BaseModel
from turno.handlers import JobContext, job_type


class Invoice(BaseModel):
    number: int


@job_type("invoices.render", queue="reports", timeout="2 min")
def render(ctx: JobContext, payload: Invoice) -> dict[str, int]:
    \"\"\"Renders an invoice.\"\"\"
    ctx.report_progress(50, "Rendering")
    (ctx.folder / "invoice.txt").write_text(f"Invoice {payload.number}")
    return {"number": payload.number}
```
"""

from jobs.context import JobContext
from jobs.errors import (
    JobCancelled,
    JobError,
    JobTimeout,
    LeaseLost,
    PermanentJobError,
    ResultError,
    Snooze,
    TransientJobError,
)
from jobs.jobtypes import JobType
from jobs.registry import job_type
from jobs.signatures import RegistrationError

__all__ = [
    "JobCancelled",
    "JobContext",
    "JobError",
    "JobTimeout",
    "JobType",
    "LeaseLost",
    "PermanentJobError",
    "RegistrationError",
    "ResultError",
    "Snooze",
    "TransientJobError",
    "job_type",
]
