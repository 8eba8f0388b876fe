"""Indexes and checks made beside running work, by a migration that may be broken off anywhere and run again.

CREATE INDEX CONCURRENTLY can't be rolled back: what gives up behind a lock, or dies, leaves an invalid index of its
name behind, and those of its migration that were built before it. Django's own operation then fails for ever.
"""

from django.contrib.postgres import operations
from django.db import migrations
from django.db.backends.ddl_references import Statement

# None: there is no index of that name on the table; else whether it was built to its end.
BUILT = """
SELECT i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = %s::regclass AND c.relname = %s
"""

ALTER = "ALTER TABLE %(table)s %(steps)s"
REPLACE = "DROP CONSTRAINT IF EXISTS %(name)s, ADD %(said)s NOT VALID"
VALIDATE = "VALIDATE CONSTRAINT %(name)s"


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


class ReplaceChecks(migrations.operations.base.Operation):
    """Other conditions for CHECKs of a table, under the same names: in their place at once for what is written from
    then on, then looked for in the rows that are there, in one pass beside running work. Can be broken off anywhere, run
    again, and undone."""

    def __init__(self, model_name, constraints):
        self.model_name = model_name
        self.constraints = constraints

    def deconstruct(self):
        return type(self).__qualname__, [self.model_name, self.constraints], {}

    def state_forwards(self, app_label, state):
        for constraint in self.constraints:
            state.alter_constraint(app_label, self.model_name, constraint.name, constraint)

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        names = {constraint.name for constraint in self.constraints}
        said = [c for c in model._meta.constraints if c.name in names]
        quoted = {c.name: schema_editor.quote_name(c.name) for c in said}
        parts = [Statement(REPLACE, name=quoted[c.name], said=c.constraint_sql(model, schema_editor)) for c in said]
        looks = [Statement(VALIDATE, name=name) for name in quoted.values()]
        for steps in (parts, looks):
            table, joined = schema_editor.quote_name(model._meta.db_table), ", ".join(map(str, steps))
            schema_editor.execute(Statement(ALTER, table=table, steps=joined), params=None)

    database_backwards = database_forwards

    def references_model(self, name, app_label):
        return name.lower() == self.model_name.lower()

    def describe(self):
        return f"Replace checks of {self.model_name}: {', '.join(c.name for c in self.constraints)}"
