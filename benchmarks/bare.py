"""The least that a web process can do for a job: a django-ninja endpoint that inserts a row. Settings and ASGI in one.

`daphne benchmarks.bare:application`: what `POST /api/jobs` is measured against. The database's alias is that of Turno's
web process, with its pool.
"""

import os

from django.conf import settings

from jobs.conf import conf
from turno.databases import databases

INSERT = "INSERT INTO public.bare (type, payload, at) VALUES (%s, %s, now()) RETURNING id"

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES=databases(conf().database, pooled=True),
    DEBUG=False,
    INSTALLED_APPS=["ninja"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],  # it says how long an answer is
    ROOT_URLCONF="benchmarks.bare",
    SECRET_KEY="k" * 50,
    USE_TZ=True,
)
os.environ.pop("DJANGO_SETTINGS_MODULE", None)

from django.core.asgi import get_asgi_application  # noqa: E402  (the settings come first)

application = get_asgi_application()

from django.db import connection  # noqa: E402  (after the setup)
from django.http import HttpRequest  # noqa: E402  (after the setup)
from django.urls import path  # noqa: E402  (after the setup)
from ninja import NinjaAPI, Schema  # noqa: E402  (after the setup)

api = NinjaAPI(openapi_url=None)


class JobIn(Schema):
    """What a job needs at the least."""

    type: str
    payload: dict[str, object]


@api.post("/jobs")
def insert(request: HttpRequest, job: JobIn) -> dict[str, int]:
    """Insert one row, in a transaction of its own."""
    import orjson

    with connection.cursor() as cursor:
        cursor.execute(INSERT, [job.type, orjson.dumps(job.payload).decode()])
        row = cursor.fetchone()
    return {"id": row[0] if row else 0}


@api.get("/health/live")
def alive(request: HttpRequest) -> dict[str, bool]:
    """It answers."""
    return {"alive": True}


urlpatterns = [path("api/", api.urls)]
