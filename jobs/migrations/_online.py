"""Indexes and checks made beside running work, by a migration that may be broken off anywhere and run again.

CREATE INDEX CONCURRENTLY can't be rolled back: what gives up behind a lock, or dies, leaves an invalid index of its
name behind, and those of its migration that were built before it. Django's own operation then fails for ever.
"""

from django.contrib.postgres import operations
from django.db import migrations

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


class ReplaceCheck(migrations.AlterConstraint):
    """Another condition for a CHECK, under the same name: in its place at once for what is written from then on, then
    looked for in the rows that are there, beside running work. Can be broken off anywhere, run again, and undone."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        self._replace(app_label, schema_editor, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        self._replace(app_label, schema_editor, to_state)

    def _replace(self, app_label, schema_editor, state):
        model = state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        constraint = state.models[app_label, self.model_name_lower].get_constraint_by_name(self.name)
        table, name = (schema_editor.quote_name(text) for text in (model._meta.db_table, self.name))
        said = constraint.constraint_sql(model, schema_editor)
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}, ADD {said} NOT VALID", params=None)
        schema_editor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}", params=None)
