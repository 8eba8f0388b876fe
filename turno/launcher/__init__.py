"""The launcher behind `./iniciar.sh`: installs, starts a private PostgreSQL, web and workers, keeps them up.

It knows the product only from outside (its commands, its HTTP answers, its configuration variables) and
imports none of its rooms. `cli` and what it imports at its head run on the standard library alone, since they
work before the virtual environment exists.
"""
