"""Indexes built beside running work, by a migration that may be broken off anywhere and run again.

CREATE INDEX CONCURRENTLY can't be rolled back: what gives up behind a lock, or dies, leaves an invalid index of its
name behind, and those of its migration that were built before it. Django's own operation then fails for ever.
"""

from django.contrib.postgres import operations

# None: there is no index of that name on the table; else whether it was built to its end.
BUILT = """
SELECT i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = %s::regclass AND c.relname = %s
"""


class AddIndexConcurrently(operations.AddIndexConcurrently):
    """Django's; an index that is there is kept, the rest of one that was broken off is cleared away first."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        model = to_state.apps.get_model(app_label, self.model_name)
        if not schema_editor.collect_sql and self.allow_migrate_model(schema_editor.connection.alias, model):
            with schema_editor.connection.cursor() as cursor:
                cursor.execute(BUILT, [schema_editor.quote_name(model._meta.db_table), self.index.name])
                found = cursor.fetchone()
            if found == (True,):
                return
            if found is not None:
                schema_editor.remove_index(model, self.index, concurrently=True)
        super().database_forwards(app_label, schema_editor, from_state, to_state)
