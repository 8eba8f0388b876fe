"""A database backend of Django's for use behind a PgBouncer; see `base`."""

LIMITS = "each_transaction"  # in OPTIONS: (statement_timeout, idle_in_transaction_session_timeout), milliseconds
