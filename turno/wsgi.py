"""The application of `manage.py runserver`, for trying things out; what serves people is `turno.asgi`."""

import os

from django.core.wsgi import get_wsgi_application

from jobs import reachable
from jobs.conf import conf
from jobs.registry import catalogue
from turno.environment import prepare

os.environ["TURNO_PROCESS"] = "web"
prepare()
application = get_wsgi_application()
catalogue.load(guarded=True)
reachable.watch(conf())
