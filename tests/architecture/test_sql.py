"""Who may write a job's state, and how SQL comes to be: two laws that a reader would have to check in every file."""

import ast

import pytest

from tests.architecture.sqltext import built_at_run_time
from tests.architecture.tree import sources
from tests.architecture.writers import writes

DOOR = "jobs/transitions/"


def test_nobody_but_the_transitions_writes_the_state_of_a_job():
    found = {
        f"{path}:{line} {reason}"
        for path, tree in sources().items()
        if not path.startswith((DOOR, "jobs/migrations/"))
        for line, reason in writes(tree)
    }

    assert found == set()


def test_the_transitions_do_write_it():
    assert any(list(writes(tree)) for path, tree in sources("jobs").items() if path.startswith(DOOR))


@pytest.mark.parametrize(
    "source",
    [
        "x = 'UPDATE turno.jobs SET state = %s'",
        "x = '''with a as (select 1)\n update only\n   turno.jobs as j set x = 1'''",
        """x = 'insert into "turno"."jobs" (id) values (1)'""",
        "x = f'DELETE FROM turno.jobs WHERE id IN ({marks})'",
        "x = 'TRUNCATE turno.jobs CASCADE'",
        "x = 'INSERT INTO turno.job_state_changes (job_id) VALUES (1)'",
        "from jobs.models import Job\nJob.objects.filter(id=1).update(state='Failed')",
        "from jobs.models import Job\nJob.objects.create(id=1)",
        "from jobs.models.job import Job as Work\nWork(id=1).save()",
        "from jobs.models import Job\njob = Job.objects.get(id=1)\njob.save()",
        "from jobs.models import Job\nrows = Job.objects.all()\nrows.bulk_update(x, ['state'])",
        "from jobs.models import Job\nawait Job.objects.filter(id=1).adelete()",
        "from jobs.models import JobAttempt\nJobAttempt._base_manager.bulk_create([])",
    ],
)
def test_the_scanner_sees_a_writer(source):
    assert list(writes(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "x = 'SELECT * FROM turno.jobs FOR UPDATE'",
        "x = 'UPDATE turno.workers SET state = 1'",
        "x = 'UPDATE turno.jobs_archive SET x = 1'",
        "from jobs.models import Job\nlist(Job.objects.filter(state='Failed').values())",
        "from jobs.models import Job\nseen = {}\nseen.update(a=1)",
        "from somewhere import Job\nJob.objects.create()",
    ],
)
def test_the_scanner_sees_no_writer_in_a_reader(source):
    assert not list(writes(ast.parse(source)))


def test_no_sql_is_put_together_from_what_is_no_constant():
    assert [f"{path}:{line} {text}" for path, line, text in built_at_run_time(sources())] == []


@pytest.mark.parametrize(
    "source",
    [
        "def f(cursor, name):\n    cursor.execute(f'SELECT {name}')",
        "def f(cursor, name):\n    cursor.execute('SELECT ' + name)",
        "def f(cursor, name):\n    cursor.execute('SELECT %s' % name)",
        "def f(cursor, name):\n    cursor.execute('SELECT {}'.format(name))",
        "def f(cursor, name):\n    sql = 'SELECT 1'\n    sql += name\n    cursor.execute(sql)",
        "def f(cursor, names):\n    cursor.execute(SQL + ', '.join(names))",
        "def f(cursor, request):\n    cursor.execute(request.body)",
        "def one(cursor, sql):\n    cursor.execute(sql)\ndef f(cursor, name):\n    one(cursor, f'SELECT {name}')",
        "def one(c, sql):\n    c.execute(sql)\ndef two(c, q):\n    one(c, q)\ndef f(c, n):\n    two(c, n.text)",
        "def f(manager, name):\n    manager.raw(f'SELECT {name}')",
        "def f(name):\n    return RawSQL(f'SELECT {name}', [])",
        "def f(cursor, name):\n    cursor.execute(SQL('SELECT ' + name).format(Identifier('a')))",
    ],
)
def test_the_scanner_sees_sql_that_is_put_together(source):
    assert list(built_at_run_time({"x.py": ast.parse(source)}))


@pytest.mark.parametrize(
    "source",
    [
        "def f(cursor):\n    cursor.execute('SELECT 1', [1])",
        "def f(cursor, x):\n    cursor.execute(FIND, {'x': x})",
        "def f(cursor):\n    cursor.execute(f'SELECT {COLUMNS} FROM {module.TABLE}')",
        "def f(cursor, state):\n    cursor.execute(PURGE.format(state=State(state)))",
        "def f(cursor, mine):\n    sql = BY_OWNER if mine else ALL\n    cursor.execute(sql)",
        "def f(cursor):\n    for sql in (ONE, TWO):\n        cursor.execute(sql)",
        "def f(cursor, name):\n    cursor.execute(SQL('LISTEN {}').format(Identifier(name)))",
        "def one(cursor, sql):\n    cursor.execute(sql)\ndef f(cursor):\n    one(cursor, FIND)",
        "def f(cursor, kind):\n    cursor.execute(QUERIES[kind])",
        "class C:\n    def execute(self, *a):\n        return super().execute(*a)",
    ],
)
def test_the_scanner_lets_constants_pass(source):
    assert list(built_at_run_time({"x.py": ast.parse(source)})) == []
