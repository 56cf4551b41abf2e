"""What a view's query reads: relations and columns, found with sqlglot in the dialect of the engine that made it.

Handed to the use cases as a `schemasync.core.dependents.ViewReader`. Where a name may belong to several relations it
counts for each: a view is rather told of too often than not at all. Whatever a text does to the parser is that view's
trouble alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeGuard

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.optimizer.scope import Scope, build_scope

from schemasync.core.dependents import Reads, Relation
from schemasync.core.view_origin import Unclear, ViewQuery

_ALL: Final = "*"
_ORDERING: Final = (exp.Order, exp.Sort, exp.Cluster, exp.Distribute)
"""Where a bare name means the query's own output first."""

_Source = exp.Table | Scope


class SqlglotReader:
    """Reads queries of Spark, Hive and Trino."""

    def read(self, query: ViewQuery) -> Reads | Unclear:
        """Tell which relations a query reads, and which columns of each it uses."""
        try:
            parsed = sqlglot.parse_one(query.text, read=query.dialect.value)
            if hidden := _hidden(parsed.find_all(exp.Anonymous)):
                return Unclear(reason=f"what it names by {hidden}(...) is not looked up")
            root = build_scope(parsed.unnest() if isinstance(parsed, exp.Subquery) else parsed)
            return Unclear(reason="it is no query") if root is None else _Use(root, query.database).reads()
        except Exception as error:  # in how many ways a parser fails on any text, nobody can list
            return Unclear(reason=_reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        return f"{first['description']} (line {first['line']})"
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _hidden(calls: Iterable[exp.Anonymous]) -> str:
    """Return the function whose argument is a name, empty where none is.

    Spark's IDENTIFIER is the relation, column or function that a text names; a relation is handed to another function
    by TABLE.
    """
    for call in calls:
        name = call.name.upper()
        if name == "IDENTIFIER" or (name == "TABLE" and not isinstance(call.parent, exp.Table)):
            return name
    return ""


class _Use:
    """One query, walked: ``used`` grows while names are resolved."""

    def __init__(self, root: Scope, database: str) -> None:
        self._root = root
        self._database = database
        self._scopes = {id(scope.expression): scope for scope in root.traverse()}
        self._used: dict[Relation, set[str]] = {}
        self._asked: set[tuple[int, str]] = set()

    def reads(self) -> Reads:
        for scope in self._scopes.values():
            self._tables(scope)
            self._columns(scope)
            self._stars(scope)
            self._joins(scope)
        self._ask(self._root, _ALL)
        return Reads(columns={r: None if _ALL in names else frozenset(names) for r, names in self._used.items()})

    def _tables(self, scope: Scope) -> None:
        """Note every relation, also one of which no column is used."""
        for table in scope.find_all(exp.Table):
            named_here = isinstance(scope.sources.get(table.alias_or_name), Scope)
            if _is_relation(table) and not named_here:
                self._used.setdefault(self._relation(table), set())

    def _relation(self, table: exp.Table) -> Relation:
        return (table.db or self._database).lower(), table.name.lower()

    def _columns(self, scope: Scope) -> None:
        for column in scope.find_all(exp.Column):
            parts = [part.name.lower() for part in column.parts]
            found = next(self._owners(scope, parts), None)
            if found is None:
                self._bare(scope, column, parts[0])
            elif found[1] != _ALL or column.parent is not scope.expression:
                self._take(*found)

    def _owners(self, scope: Scope, parts: list[str]) -> Iterator[tuple[_Source, str]]:
        """Yield the source that a complete name begins with, and the column in it."""
        around: Scope | None = scope
        while around is not None:
            for alias, source in _sources(around):
                if rest := _after(alias, source, parts):
                    yield source, rest[0]
            around = around.parent

    def _bare(self, scope: Scope, column: exp.Column, name: str) -> None:
        """Take a name without a source, or the column in front of a field, from every source that it can see."""
        clause = column.find_ancestor(*_ORDERING, exp.Select)
        if isinstance(clause, _ORDERING) and clause.parent is scope.expression and name in _aliases(scope):
            return
        for around in _visible(scope):
            for _, source in _sources(around):
                self._take(source, name)

    def _stars(self, scope: Scope) -> None:
        """Take all columns where a star is more than what the query hands on, or counts rows."""
        for star in scope.find_all(exp.Star):
            if not isinstance(star.parent, exp.Column | exp.Count) and star.parent is not scope.expression:
                self._take_each(scope, _ALL)
        if scope.is_subquery and not isinstance(scope.expression.parent, exp.Exists):
            self._ask(scope, _ALL)

    def _joins(self, scope: Scope) -> None:
        for join in scope.find_all(exp.Join):
            for name in join.args.get("using") or ():
                self._take_each(scope, name.name.lower())
            if join.method == "NATURAL":
                self._take_each(scope, _ALL)

    def _take_each(self, scope: Scope, name: str) -> None:
        for _, source in _sources(scope):
            self._take(source, name)

    def _take(self, source: _Source, name: str) -> None:
        if isinstance(source, Scope):
            self._ask(source, name)
        else:
            self._used.setdefault(self._relation(source), set()).add(name)

    def _ask(self, scope: Scope, name: str) -> None:
        """Follow a column that is asked of an inner query to where a star takes it from; columns it names are known."""
        if (id(scope), name) in self._asked:
            return
        self._asked.add((id(scope), name))
        query = scope.expression
        if isinstance(query, exp.SetOperation):
            # Columns of the sides meet by position.
            for side in (query.this, query.expression):
                self._ask(self._scopes[id(side.unnest())], _ALL)
        elif scope.outer_columns or name not in _aliases(scope):
            for source in _handed_on(scope):
                self._take(source, _ALL if scope.outer_columns else name)


def _sources(scope: Scope) -> Iterator[tuple[str, _Source]]:
    """Yield the relations that a query selects from by name, both sides of semi joins included."""
    for name, _ in scope.references:
        source = scope.sources.get(name)
        if isinstance(source, Scope) or _is_relation(source):
            yield name.lower(), source


def _is_relation(source: exp.Table | None) -> TypeGuard[exp.Table]:
    """Tell tables and views from functions that stand in their place."""
    return source is not None and isinstance(source.this, exp.Identifier)


def _after(alias: str, source: _Source, parts: list[str]) -> list[str]:
    """Return what follows the source's name in a name, nothing where the name does not begin with it."""
    if parts[0] == alias:
        return parts[1:]
    if isinstance(source, exp.Table) and source.db:
        named = [source.db.lower(), source.name.lower()]
        return next((parts[n + 2 :] for n in (0, 1) if parts[n : n + 2] == named), [])
    return []


def _visible(scope: Scope) -> Iterator[Scope]:
    """Yield a query and those around it whose columns it can name."""
    yield scope
    while scope.parent is not None and not (scope.is_derived_table or scope.is_cte):
        scope = scope.parent
        yield scope


def _aliases(scope: Scope) -> set[str]:
    query = scope.expression
    return {one.alias.lower() for one in query.selects if one.alias} if isinstance(query, exp.Select) else set()


def _handed_on(scope: Scope) -> Iterator[_Source]:
    """Yield the sources whose columns a query's own stars hand on."""
    query = scope.expression
    for item in query.selects if isinstance(query, exp.Select) else ():
        if isinstance(item, exp.Star):
            yield from (source for _, source in _sources(scope))
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            named = [part.name.lower() for part in item.parts]
            yield from (source for alias, source in _sources(scope) if _after(alias, source, named) == [_ALL])
