"""The house's addresses: the pages people see, the admin, and the API at the root."""

from django.urls import include, path
from django.views.generic import RedirectView

from jobs.admin import site as admin
from jobs.api.urls import urls as api

handler500 = "jobs.api.middleware.server_error"

urlpatterns = [
    path("", include("dashboard.urls")),
    path("admin", RedirectView.as_view(url="/admin/")),
    path("admin/", admin.urls),
    path("", api),
]
