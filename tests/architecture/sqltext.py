"""Finds SQL that is put together at run time: what reaches the database is a constant, values go as parameters.

Constant is a literal, a name in capitals (a module builds it when it is imported, before there is any input), and
what only constants were joined into. A function that hands a parameter on as SQL is a carrier: its callers are
looked at in its place.
"""

import ast
from collections.abc import Iterator, Mapping

SINKS = {"execute": 0, "executemany": 0, "raw": 0, "RawSQL": 0, "copy": 0}
BUILDERS = {"format", "replace", "join", "strip"}
COMPOSED = {"SQL", "Composed"}  # psycopg.sql quotes what it puts in
# Calling it refuses whatever is not one of its few values; a statement of migrations, of names and conditions that
# Django quotes.
CHECKED = {"State", "Statement"}

type Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def built_at_run_time(trees: Mapping[str, ast.AST]) -> Iterator[tuple[str, int, str]]:
    """File, line and text of each piece of SQL that is no constant."""
    carriers: dict[str, dict[str, int]] = {path: {} for path in trees}
    while True:
        known = {path: _sinks(path, tree, carriers) for path, tree in trees.items()}
        found = {path: dict(_carriers(tree, known[path])) for path, tree in trees.items()}
        if found == carriers:
            break
        carriers = found
    for path, tree in trees.items():
        for call, functions in _calls(tree, ()):
            argument = _sql_of(call, known[path])
            if argument is not None and not _constant(argument, functions, known[path]):
                yield path, call.lineno, ast.unparse(argument)


def _sinks(path: str, tree: ast.AST, carriers: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """What takes SQL in this file: the driver's methods, its own carriers, those that it imports."""
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    elsewhere = {name: place for others in carriers.values() for name, place in others.items() if name in imported}
    return {**SINKS, **elsewhere, **carriers[path]}


def _calls(node: ast.AST, functions: tuple[Function, ...]) -> Iterator[tuple[ast.Call, tuple[Function, ...]]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        functions = (*functions, node)
    if isinstance(node, ast.Call):
        yield node, functions
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, functions)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _sql_of(call: ast.Call, sinks: Mapping[str, int]) -> ast.expr | None:
    """The argument that is SQL, where the call is one that takes some."""
    position = sinks.get(_called(call))
    if position is None:
        return None
    for keyword in call.keywords:
        if keyword.arg in {"sql", "query"}:
            return keyword.value
    if len(call.args) <= position or any(isinstance(argument, ast.Starred) for argument in call.args[: position + 1]):
        return None
    return call.args[position]


def _parameters(function: Function) -> list[str]:
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]


def _carriers(tree: ast.AST, sinks: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for call, functions in _calls(tree, ()):
        argument = _sql_of(call, sinks)
        if isinstance(argument, ast.Name) and (carrier := _owner(argument.id, functions)):
            names = [name for name in _parameters(carrier) if name not in {"self", "cls"}]
            yield carrier.name, names.index(argument.id)


def _owner(name: str, functions: tuple[Function, ...]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The named function among these whose parameter this is."""
    for function in reversed(functions):
        if name in _parameters(function) and not isinstance(function, ast.Lambda):
            return function
    return None


def _constant(node: ast.expr | None, functions: tuple[Function, ...], sinks: Mapping[str, int]) -> bool:
    if isinstance(node, ast.Name):
        return node.id.isupper() or _local(node.id, functions, sinks)
    parts = _parts(node)
    return parts is not None and all(_constant(part, functions, sinks) for part in parts)


def _parts(node: ast.expr | None) -> list[ast.expr] | None:
    """What an expression is joined from: nothing for a constant, None for what can never be one."""
    parts: list[ast.expr] | None = None
    match node:
        case ast.Constant():
            parts = []
        case ast.Attribute(attr=name) if name.isupper():
            parts = []
        case ast.Subscript(value=value) | ast.FormattedValue(value=value):
            parts = [value]
        case ast.JoinedStr(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            parts = values
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [left, right]
        case ast.IfExp(body=body, orelse=other):
            parts = [body, other]
        case ast.Call() if _called(node) in CHECKED:
            parts = []
        case ast.Call(args=args) if _called(node) in COMPOSED:
            parts = args
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=args, keywords=keywords) if name in BUILDERS:
            composed = isinstance(value, ast.Call) and _called(value) in COMPOSED
            parts = [value] if composed else [value, *args, *(keyword.value for keyword in keywords)]
    return parts


def _local(name: str, functions: tuple[Function, ...], sinks: Mapping[str, int]) -> bool:
    """Whether a name in small letters holds constants only: each value it is given, or it came through a carrier."""
    owner = _owner(name, functions)
    if owner is not None:
        names = [parameter for parameter in _parameters(owner) if parameter not in {"self", "cls"}]
        return sinks.get(owner.name) == names.index(name)
    given: list[ast.expr | None] = []
    for function in functions:
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=targets, value=value) if _stores(targets, name):
                    given.append(value)
                case ast.AnnAssign(target=ast.Name(id=target), value=value) if target == name:
                    given.append(value)
                case ast.AugAssign(target=ast.Name(id=target), value=value) if target == name:
                    given.append(value)
                case ast.For(target=target, iter=iterated) if _stores([target], name):
                    given.append(iterated)
    return bool(given) and all(_constant(value, functions, sinks) for value in given)


def _stores(targets: list[ast.expr], name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)
