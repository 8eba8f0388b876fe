"""`python -m workers.supervision [arguments of runworker]`: for who starts workers without manage.py."""

import sys

from workers.supervision.door import interpreter, supervise

if __name__ == "__main__":
    sys.exit(supervise([*interpreter(), "-m", "django"], sys.argv[1:]))
