"""Django's settings, derived from the typed settings of `jobs.conf`."""

import os
import secrets
import sys
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.utils.csp import CSP

from jobs.conf import ConfigurationError, conf
from jobs.speech import _
from turno.databases import databases

BASE_DIR = Path(__file__).resolve().parent.parent

try:
    CONF = conf()
except ConfigurationError as error:
    raise ImproperlyConfigured(_("Turno's configuration can't be used:") + f"\n{error}") from None

sys.path[:0] = [path for path in CONF.python_path if path not in sys.path]

DEBUG = False
# Without a configured key the sessions end with the process; iniciar.sh writes one into .env.
SECRET_KEY = CONF.web.secret_key or secrets.token_urlsafe(50)
ALLOWED_HOSTS = list(CONF.web.allowed_hosts)

# The API's framework brings the page of its documentation, which no worker shows: 3.5 MB less of a worker's memory.
WORKS = sys.argv[1:2] == ["runworker"]

# `workers` stands before `channels`, whose own `runworker` command would win otherwise.
INSTALLED_APPS = [
    "django.contrib.admin.apps.SimpleAdminConfig",  # its site is `jobs.admin`, which only the addresses import
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "jobs",
    "workers",
    "dashboard",
    "channels",
    *([] if WORKS else ["ninja"]),
    *CONF.apps,
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "jobs.api.middleware.ProblemMiddleware",
    "turno.serving.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "dashboard.zone.ViewerZone",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "turno.urls"
ASGI_APPLICATION = "turno.asgi.application"
WSGI_APPLICATION = "turno.wsgi.application"
DATABASES = databases(CONF.database, pooled=os.environ.get("TURNO_PROCESS") == "web")
# With Redis the nudges for screens go over its first server (`jobs.carriers`), else by PostgreSQL: several would each
# carry a part, and none of it twice. Sockets of one process need no layer.
CHANNEL_LAYERS = (
    {
        "screens": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {
                "hosts": [{"address": CONF.redis.urls[0], "socket_connect_timeout": 2.0}],
                "prefix": CONF.redis.key_prefix,
            },
        }
    }
    if CONF.redis.urls
    else {}
)
# Of this process: who gave wrong keys and passwords (`jobs.throttle`). Django's 300 entries are fewer than the
# addresses that one attacker may have, and whoever drops out of it is counted from zero.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 100_000}}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dashboard.context.app",
            ],
        },
    },
]

LANGUAGE_CODE = "pt-br"
LANGUAGES = [("pt-br", "Português (Brasil)"), ("en", "English")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = False
SERVESTATIC_ALLOW_ALL_ORIGINS = False

DATA_UPLOAD_MAX_MEMORY_SIZE = CONF.limits.request
APPEND_SLASH = False

SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF, CSP.NONCE],
    "style-src": [CSP.SELF],
    "font-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_NAME = "turno_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CONF.web.secure_cookies
LOGIN_URL = "sign-in"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
CSRF_COOKIE_NAME = "turno_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = CONF.web.secure_cookies

# For the web process and the commands; a worker sets its own (`workers.logs`). No e-mails to admins, as Django's.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "channels_redis": {"level": "CRITICAL"},  # a stack a second without Redis; `dashboard.live` says it once
    },
}
