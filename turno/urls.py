"""The house's addresses: the pages people see, and the API at the root."""

from django.urls import include, path

from jobs.api.urls import urls as api

handler500 = "jobs.api.middleware.server_error"

urlpatterns = [path("", include("dashboard.urls")), path("", api)]
