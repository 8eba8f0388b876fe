"""The first user of an installation: whoever installed it gets an administrator to sign in as."""

import os

from django.contrib.auth import get_user_model

NAME = "admin"
PASSWORD = "DJANGO_SUPERUSER_PASSWORD"  # noqa: S105  the variable's name, which Django's createsuperuser reads too
# The launcher looks for this line; it is not for people.
MADE = f"first user made: {NAME}"


def make_first_user(using: str) -> bool:
    """Make the administrator `admin` where there is no user yet and the variable gives a password; True when made."""
    password = os.environ.get(PASSWORD)
    people = get_user_model()._default_manager.db_manager(using)
    if not password or people.exists():
        return False
    people.create_superuser(NAME, password=password)
    return True
