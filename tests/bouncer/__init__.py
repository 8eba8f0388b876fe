"""The whole of Turno behind a PgBouncer in transaction mode."""
