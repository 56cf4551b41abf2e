"""From what is there and what should be to a decision: verdict, changes, diagnostics, and what must be made.

Pure: everything that was looked at comes in as `Inspected`, and the same input always gives the same decision. The
steps with their SQL are laid out by `schemasync.app.planning`; they say everything that apply will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from schemasync.core.changes import AddColumn, Change
from schemasync.core.ddl import set_property
from schemasync.core.diagnostics import ANOTHER_TABLE, WITHOUT_MIGRATION, WITHOUT_VARIANT, Diagnostic, diagnose
from schemasync.core.diff import diff, passed_on
from schemasync.core.encoding import Encoding
from schemasync.core.envelope import standing_at, written_as
from schemasync.core.history import History
from schemasync.core.layout import SEGMENT
from schemasync.core.manifest import StateId
from schemasync.core.mapping import TableTarget
from schemasync.core.names import Dialect, folded
from schemasync.core.partitioning import Call
from schemasync.core.policy import Judgement, Verdict, judge, shown_as_one, unlike_key
from schemasync.core.ports import HiveTable
from schemasync.core.properties import (
    STATE,
    SUBJECT,
    VERSION,
    TableProperties,
    is_ours,
    made_by_us,
    read_properties,
    readable,
)
from schemasync.core.renamed import is_old_view, kept_name
from schemasync.core.schema import Column, Life, OrderingField, SubjectVersion
from schemasync.core.shape import Shape, history_of, replaced_by, shape_of, shape_of_new
from schemasync.core.type_strings import print_type
from schemasync.core.types import Type
from schemasync.core.view import RowSource, column_sql
from schemasync.errors import SchemaError

_FATAL = frozenset({"SS402", "SS403", "SS407", "SS416", "SS417"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """What was found for one table, before anything is decided.

    ``history`` is None where the registry has nothing usable; ``trouble`` then says why. ``key`` are the columns of
    the key subject in its newest version, ``key_version``, None and 0 where there is no such subject; ``remarks`` say
    what should be known of them.
    ``history_table`` is whatever has that table's name; ``old_view`` and ``old_history`` have the names that these had
    before (`schemasync.core.renamed`). ``misplaced`` says that the table's data is not where ``location:`` says.
    """

    target: TableTarget
    history: History | None
    key: tuple[str, ...] | None
    table: HiveTable | None
    view: HiveTable | None
    history_table: HiveTable | None = None
    old_view: HiveTable | None = None
    old_history: HiveTable | None = None
    misplaced: Diagnostic | None = None
    trouble: tuple[Diagnostic, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    key_version: int = 0

    @property
    def views(self) -> tuple[HiveTable, ...]:
        """The view by each name under which it stands: the old one, too, until that is dropped."""
        found = (self.view, self.old_view if is_old_view(self.old_view, self.target) else None)
        return tuple(view for view in found if view is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done with one table, and why.

    ``current`` is the shape it has, ``desired`` the one it should have; where the verdict is HOLD the table goes on
    under ``current``. ``create`` and ``drop_first`` are for tables that do not exist, or are taken over.
    ``key_version`` is the version of the key subject that was looked at, 0 where none was.
    """

    target: TableTarget
    verdict: Verdict
    changes: tuple[Change, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    current: Shape | None = None
    desired: Shape | None = None
    properties: TableProperties | None = None
    create: bool = False
    drop_first: bool = False
    key_version: int = 0

    @property
    def effective(self) -> Shape | None:
        """The shape that the table has once this decision is carried out."""
        return self.current if self.verdict is Verdict.HOLD else self.desired or self.current


def decide(inspected: Inspected) -> Decision:
    """Decide what becomes of one table."""
    target, table = inspected.target, inspected.table
    if table is not None and (obstacle := _in_place_of_table(table, target)):
        return _held(target, obstacle, *_gone(inspected))
    if inspected.misplaced is not None:
        # Without properties: nothing of what is there may be taken for the table's state.
        return _held(target, inspected.misplaced)
    view = inspected.view
    # A table whose view is not ours has its state all the same.
    known = readable(table.properties) if table is not None else None
    if view is not None and (obstacle := in_place_of_view(view, target)):
        return _held(target, obstacle, properties=known)
    if table is None or not is_ours(table.properties):
        return _decide_new(inspected, drop_first=table is not None)
    return _decide_ours(inspected, table)


def _gone(inspected: Inspected) -> tuple[Diagnostic, ...]:
    """Return that the subject is not in the registry: what stands in its way may be there for a mistyped name only."""
    return tuple(found for found in inspected.trouble if found.code == "SS405")


def _in_place_of_table(found: HiveTable, target: TableTarget) -> Diagnostic | None:
    """Say why what has the table's name is no table of ours and may not become one, None where it is or may."""
    name = f"{found.database}.{found.name}"
    if found.kind == "VIRTUAL_VIEW":
        message = f"{name} is a view, which no table can replace"
        return diagnose("SS201", message, fix="Drop it, rename it, or choose another name (table:).")
    if is_ours(found.properties):
        return _of_another(found, target)
    if made_by_us(found.properties):
        message = f"{name}: the property {SUBJECT} is missing"
        statement = set_property(target, SUBJECT, target.subject)
        fix = f"Restore the property; where the table is of {target.subject}: {statement}"
        return diagnose("SS214", message, fix=fix)
    if reason := _not_to_be_taken(found):
        said = reason if target.adopt else "exists and is not schemasync's"
        return diagnose("SS201", f"{name} {said}", fix="Rename it, or choose another name (table:).")
    if not target.adopt:
        return diagnose("SS201", f"{name} exists and is not schemasync's")
    return None


def _not_to_be_taken(found: HiveTable) -> str:
    """Say why a table of somebody else may not be dropped, empty where only its definition goes with that."""
    if reason := found.purges:
        return f"{reason}: taking it over would delete its data"
    if found.table_format:
        # Spark drops it only with that one's library; and where its data is only the definition may know.
        return f"is a table of {found.table_format}, and no plain files: only what made it can drop it"
    return ""


def _of_another(found: HiveTable, target: TableTarget) -> Diagnostic | None:
    """Say that a table of ours is of another subject: whatever else is known of it is not about this one."""
    if (subject := found.properties[SUBJECT]) == target.subject:
        return None
    message = f"{found.database}.{found.name} belongs to the subject {subject}"
    return diagnose("SS201", message, fix="Give each subject a table of its own (table:).")


def in_place_of_view(found: HiveTable, target: TableTarget) -> Diagnostic | None:
    """Say why what has the view's name may not be replaced, None where it may."""
    name = f"{found.database}.{found.name}"
    ours = is_ours(found.properties)
    if not ours and not target.adopt and found.kind == "VIRTUAL_VIEW":
        return diagnose("SS201", f"{name}, which the view would replace, is not schemasync's")
    if found.kind != "VIRTUAL_VIEW":
        message = f"{name} is a {found.kind.lower()}, which no view can replace"
        return diagnose("SS201", message, fix="Rename it, or choose another name (names: {view: ...}).")
    if (subject := found.properties.get(SUBJECT, target.subject)) != target.subject:
        message = f"{name}, which the view would replace, belongs to the subject {subject}"
        fix = "Give each subject a view of its own (names: {view: ...}); drop it where nobody needs it."
        return diagnose("SS201", message, fix=fix)
    return None


def in_place_of_next_view(found: HiveTable, target: TableTarget) -> Diagnostic | None:
    """Say why what has the name of the view's next definition may not be replaced, None where a run of ours left it."""
    if found.properties.get(SUBJECT) == target.subject:
        return None
    message = f"{found.database}.{found.name} stands where the view's next definition is made"
    return diagnose("SS201", message, fix="Rename it, or choose another name for the view (names: {view: ...}).")


def _held(target: TableTarget, *diagnostics: Diagnostic, **rest: Any) -> Decision:
    return Decision(target=target, verdict=Verdict.HOLD, diagnostics=diagnostics, **rest)


def _decide_new(inspected: Inspected, *, drop_first: bool) -> Decision:
    target, history = inspected.target, inspected.history
    if history is None or inspected.trouble:
        return _held(target, *inspected.trouble)
    newest = history.newest
    shape, problems = shape_of_new(target, history, newest, key=inspected.key)
    errors = [p for p in problems if p.code in _FATAL]
    if errors:
        return _held(target, *problems)
    changes = tuple(AddColumn(column=c, position=n) for n, c in enumerate(shape.columns))
    return Decision(
        target=target,
        verdict=Verdict.EVOLVE,
        changes=changes,
        diagnostics=(*problems, *inspected.remarks),
        desired=shape,
        create=True,
        drop_first=drop_first,
        key_version=inspected.key_version,
    )


def _decide_ours(inspected: Inspected, table: HiveTable) -> Decision:
    target = inspected.target
    try:
        properties = read_properties(table.properties)
    except ValueError as error:
        return _held(
            target, diagnose("SS214", f"{table.database}.{table.name}: {error}", fix=_restoring(table, target))
        )
    if inspected.history is None:
        return _held(target, *inspected.trouble, properties=properties)
    names = [name for name, _ in properties.partition_by]
    actual = [key.name for key in table.partition_keys if key.name != SEGMENT]
    if actual != names:
        message = f"{table.database}.{table.name} has the partition columns {actual}, and its properties say {names}"
        return _held(target, diagnose("SS417", message, fix="Restore the table as it was."), properties=properties)
    return _decide_evolution(inspected, inspected.history, properties)


def _restoring(table: HiveTable, target: TableTarget) -> str:
    """Say how the properties can be read again, with the statement where the missing value stands in another one."""
    version = table.properties.get(STATE, "").partition("@")[2]
    if readable({**table.properties, VERSION: version}) is None:
        return "Restore the property. A table of release 0.1.0 has to be made anew: CHANGELOG.md says how."
    return f"Restore the property, which {STATE} has, too: {set_property(target, VERSION, version)}"


def _decide_evolution(inspected: Inspected, history: History, properties: TableProperties) -> Decision:
    target = inspected.target
    known = history.at(properties.version)
    broken = _broken_past(history, known, properties)
    if known is None or broken:
        finding = diagnose("SS404", f"{target.subject}: {broken}")
        return _held(target, finding, *inspected.trouble, properties=properties)
    baseline, ordering = properties.baseline, properties.ordering
    current = _as_it_is(target, history, known, properties)
    if not _tells_as_applied(current, properties):
        message = f"{target.full_name}: its columns would be told apart otherwise than when they were applied"
        return _held(target, diagnose("SS408", message), *inspected.trouble, properties=properties)
    if inspected.trouble:
        return _held(target, *inspected.trouble, current=current, properties=properties)
    newest = history.newest
    kept = ordering if _keeps_order(target, newest, properties) else None
    made_with = properties.partition_by
    desired, problems = shape_of(
        target, history, newest, key=inspected.key, baseline=baseline, ordering=kept, made_with=made_with
    )
    if split := tuple(_split_keys(history, current, desired)):
        return _held(target, *split, current=current, properties=properties)
    changes = diff(current.schema, desired.schema)
    judgement = judge(
        changes,
        target.policies,
        readded=_dropped_names(history, properties.version),
        again=_shown_again(desired, properties.version),
        passed=_passed_on(target, current, desired, properties),
        unlike=_shown_as_two(current, desired),
        born=history.born,
        may_split=_may_split(target, current, properties),
    )
    reborn = (
        *_reborn_keys(current, desired),
        *_unlike_keys(current, desired),
        *_older_key(inspected, properties, desired),
    )
    # Of a table that has a key, and is held because it would lose it, nothing is insert-only.
    problems = tuple(p for p in problems if p.code != "SS401" or not current.keys)
    problems = (*problems, *_other_partitions(target, properties, current, desired))
    fatal = bool(reborn) or any(p.code in _FATAL for p in problems)
    return Decision(
        target=target,
        verdict=Verdict.HOLD if fatal else _verdict(judgement, current, desired),
        changes=changes,
        diagnostics=(*judgement.diagnostics, *problems, *inspected.remarks, *reborn),
        current=current,
        desired=desired,
        properties=properties,
        key_version=inspected.key_version,
    )


def _older_key(inspected: Inspected, properties: TableProperties, desired: Shape) -> Iterator[Diagnostic]:
    """Notice a key that the table would get back from an older version of the key subject: rows would become one."""
    was, found = properties.key_version, inspected.key_version
    if 0 < found < was and desired.keys != properties.keys:
        message = f"{inspected.target.key_source} was at version {was}, and the registry's newest is {found}"
        fix = (
            "A replica of the registry may lag, and it passes. Where the subject was made anew, say with keys: which "
            "columns are the key."
        )
        yield diagnose("SS404", message, fix=fix)


def _as_it_is(target: TableTarget, history: History, known: SubjectVersion, properties: TableProperties) -> Shape:
    """Return the shape that the table has."""
    shape, _ = shape_of(
        _as_applied(target, properties),
        history,
        known,
        key=properties.keys,
        baseline=properties.baseline,
        ordering=properties.ordering,
    )
    return replace(shape, keys=properties.keys)


def _tells_as_applied(shape: Shape, properties: TableProperties) -> bool:
    """Tell whether columns are told apart as they were when they were applied."""
    return shape.columns_hash == properties.columns and properties.lives == shape.lives_hash


def _may_split(target: TableTarget, current: Shape, properties: TableProperties) -> Callable[[Life], bool]:
    """Return what tells whether ``policies.retype: variant`` could be set now, and would keep values of a column.

    A key has no variant; and where a retype was applied that begins a life under that policy, it would be SS408. That
    takes a look at the whole history, which says the same of all columns.
    """
    keys = {c.life for c in current.columns if c.name in current.keys}

    @cache
    def could_be_set() -> bool:
        policies = target.policies.model_copy(update={"retype": "variant"})
        return _told_by(replace(target, policies=policies), current.history, properties) is not None

    return lambda life: life not in keys and could_be_set()


def _told_by(target: TableTarget, history: History, properties: TableProperties) -> History | None:
    """Return the history by another configuration, None where that would tell the table's columns apart otherwise."""
    told = history_of(target, history.versions)
    known = told.at(properties.version)
    stays = known is not None and _tells_as_applied(_as_it_is(target, told, known, properties), properties)
    return told if stays else None


def _passed_on(target: TableTarget, current: Shape, desired: Shape, properties: TableProperties) -> dict[str, str]:
    """Return (new: old) the names that `passed_on` finds, if ``renames:`` can still say so, and says it then."""
    found = passed_on(current.version.columns, desired.version.columns)
    if not found:
        return found
    told = _told_by(replace(target, renames=(*target.renames, *found.items())), desired.history, properties)
    now = {c.name: c.life for c in told.newest.columns} if told else {}
    before = {c.name: c.life for c in current.version.columns}
    return found if all(now.get(new) == before[old] for new, old in found.items()) else {}


def _as_applied(target: TableTarget, properties: TableProperties) -> TableTarget:
    """Return the table as configured when its shape was made: what is configured since then has yet to be decided."""
    # What was dropped and not kept may be gone from the metastore's table.
    drop = "keep" if properties.kept else "drop"
    policies = target.policies.model_copy(update={"drop": drop})
    return replace(target, partition_by=properties.partition_by, policies=policies)


def _split_keys(history: History, current: Shape, desired: Shape) -> Iterator[Diagnostic]:
    """Find key columns that a column of another type took the place of (``policies.retype: variant``).

    Which of the versions had which key is not known, so that lives cannot depend on it: a key is split like any column.
    """
    before = {c.life: c for c in current.columns if c.name in current.keys}
    for column in (c for c in desired.columns if c.name in desired.keys):
        places = (old.life for old, _ in replaced_by(history, desired.layout, column))
        for old in (before[life] for life in places if life in before):
            types = " to ".join(print_type(c.type, Dialect.SPARK) for c in (old, column))
            yield diagnose(
                "SS122",
                f"key column {column.name} got another type ({types}), and policies.retype says variant: "
                "rows from before would have no value in it",
                fix="Set policies.retype to migrate for this table, unless it shows variants already. Or delete the "
                "versions that brought the type from the registry.",
            )


def _reborn_keys(current: Shape, desired: Shape) -> Iterator[Diagnostic]:
    """Find key columns of one name on both sides that are two columns: older rows would all have the key NULL."""
    lives = {c.life for c in current.columns}
    for column in desired.columns:
        if column.life not in lives and column.name in current.keys and column.name in desired.keys:
            yield diagnose(
                "SS122",
                f"key column {column.name} was dropped and came back in version {column.since}: "
                "rows from before have no value in it",
                fix=f"Delete the versions without it from the registry. Or: {ANOTHER_TABLE}",
            )


def _unlike_keys(current: Shape, desired: Shape) -> Iterator[Diagnostic]:
    """Find key columns of one life whose values before and after do not tell the same rows apart."""
    before = {c.life: c for c in current.columns}
    fixes = {"SS120": WITHOUT_VARIANT["SS120"], "SS121": WITHOUT_MIGRATION}
    for column in desired.columns:
        old = before.get(column.life)
        if old is not None and column.name in desired.keys:
            for code, message in unlike_key(column, old.encoding):
                yield diagnose(code, message, fix=fixes[code])


def _shown_as_two(current: Shape, desired: Shape) -> frozenset[Life]:
    """Return the key columns of which one value of the source shows otherwise than before."""
    before = {c.life: c.encoding for c in current.columns}
    keys = (c for c in desired.columns if c.name in desired.keys and c.life in before)
    return frozenset(c.life for c in keys if not shown_as_one(before[c.life], c.encoding))


def _other_partitions(
    target: TableTarget, properties: TableProperties, current: Shape, desired: Shape
) -> Iterator[Diagnostic]:
    """Find user partitions that are not those of the rows that are written already."""
    if len(desired.partitions) < len(target.partition_by) or _told_apart(current) == _told_apart(desired):
        return
    before, after = _sources(current), _sources(desired)
    reborn = {n: c for n, c in after.items() if n in before and _came_back(before[n], c)}
    for name, column in reborn.items():
        became = (
            f"was dropped and came back as a new one in version {column.since}"
            if desired.history.replaced(column) is None
            else f"got another type in version {column.since}, and policies.retype says variant"
        )
        yield diagnose(
            "SS417",
            f"{target.full_name}, partition {name}: column {column.name} {became}: rows that are written already lie "
            "where the one before says",
            fix=ANOTHER_TABLE,
        )
    if not reborn:
        was, wanted = (
            ", ".join(f"{name}: {expression}" for name, expression in by)
            for by in (properties.partition_by, target.partition_by)
        )
        made = f"with the partitions {was}" if was else "without partitions"
        message = f"{target.full_name} was made {made}, and partition_by: now says {wanted or 'nothing'}"
        yield diagnose("SS417", message)


def _came_back(before: Column, after: Column) -> bool:
    return folded(before.name) == folded(after.name) and before.life != after.life


def _sources(shape: Shape) -> dict[str, Column]:
    """Return by user partition the column that it follows from."""
    columns = {shape.layout.current(c).name: c for c in shape.columns}
    return {p.name: columns[p.source] for p in shape.partitions}


def _told_apart(shape: Shape) -> list[tuple[str, Type, tuple[Call, ...], Life]]:
    """Return what decides in which partition a row lies; a column may be called otherwise, and be of another type."""
    sources = _sources(shape)
    return [(p.name, p.type, p.calls, sources[p.name].life) for p in shape.partitions]


def _broken_past(history: History, known: SubjectVersion | None, properties: TableProperties) -> str:
    """Say what is wrong with the versions that the table was built under, empty where nothing is."""
    if known is None:
        return f"version {properties.version}, which the table has, is gone"
    if known.fingerprint != properties.fingerprint:
        return f"version {properties.version} has another content than the one that was applied"
    if history.at(properties.baseline) is None:
        return f"version {properties.baseline}, with which the table was created, is gone"
    return ""


def _keeps_order(target: TableTarget, version: SubjectVersion, properties: TableProperties) -> bool:
    """Tell whether a table goes on with its ordering: its fields are there, maybe in another case."""
    if target.sequence_by:
        return _any_case(version.envelope.ordering) == _any_case(properties.ordering)
    # A connector that starts to send finer times does not change how this table is ordered.
    return _carries(version, properties)


def _any_case(ordering: tuple[OrderingField, ...]) -> list[OrderingField]:
    return [replace(field, path=tuple(map(folded, field.path))) for field in ordering]


def _carries(version: SubjectVersion, properties: TableProperties) -> bool:
    """Tell whether events of a version still hold every field that the table is ordered by."""
    return all(_stands_in(version.event, field) for field in properties.ordering)


def _stands_in(event: Encoding | None, field: OrderingField) -> bool:
    found = standing_at(event, field.path)
    # Milliseconds and microseconds of one name are no order; files of both are read, each as it was written.
    return found is not None and written_as(field, found) == field


def _verdict(judgement: Judgement, current: Shape, desired: Shape) -> Verdict:
    """Return the judgement's verdict; a new version without a difference still moves the watermark."""
    if judgement.verdict is Verdict.NONE and current.version.version != desired.version.version:
        return Verdict.EVOLVE
    return judgement.verdict


def _dropped_names(history: History, version: int) -> frozenset[str]:
    """Return the names, case aside, under which columns were dropped that any version up to this one had.

    Or by which the table still knows them, at this version: it never had one that they got later.
    """
    until = history.between(history.versions[0].version, version)
    sides = [{c.life: folded(c.name) for v in some for c in v.columns} for some in (history.versions, until)]
    dropped = sides[1].keys() - {c.life for c in history.newest.columns}
    return frozenset(side[life] for side in sides for life in dropped)


def _shown_again(desired: Shape, version: int) -> frozenset[Life]:
    """Return what began by this version, was dropped, and is shown: if the table does not, then once more."""
    live = {c.life for c in desired.version.columns}
    return frozenset(c.life for c in desired.columns if c.life not in live and c.since <= version)


def beyond_hive(target: TableTarget, shape: Shape, versions: frozenset[int]) -> Iterator[Diagnostic]:
    """Find columns of which rows of these versions are shown by what Hive's SQL lacks, and Trino's mostly with it.

    Both read the view as Spark stores it.
    """
    source = RowSource(shape=shape, segment_versions=versions)
    for column in () if target.only_spark else shape.columns:
        try:
            column_sql(source, column, Dialect.HIVE)
        except SchemaError:
            made = print_type(column.type, Dialect.SPARK)
            yield diagnose("SS117", f"column {column.name}: of rows from before Hive's SQL cannot make {made}")


def next_properties(decision: Decision) -> TableProperties | None:
    """Return the properties that the table has once its schema steps are done."""
    shape = decision.effective
    if shape is None:
        return decision.properties
    old = decision.properties
    values = properties_of(decision.target, shape, old, stays=shape is decision.current)
    return replace(values, key_version=_key_version(decision, old, values))


def _key_version(decision: Decision, old: TableProperties | None, values: TableProperties) -> int:
    """Return the newest version of the key subject that has the table's key, as far as it was written down.

    One without a difference alone is not written: it would be a step of its own.
    """
    if old is None or old.keys != values.keys:
        return decision.key_version
    return old.key_version if old.version == values.version else max(old.key_version, decision.key_version)


def properties_of(
    target: TableTarget, shape: Shape, old: TableProperties | None = None, *, stays: bool = False
) -> TableProperties:
    """Return a table's properties under a shape: of a new table, or of one that had ``old`` ones.

    ``stays`` says that the shape is the one that it had: what was decided with it then goes on.
    """
    return TableProperties(
        subject=target.subject,
        version=shape.version.version,
        schema_id=shape.version.schema_id,
        fingerprint=shape.version.fingerprint,
        baseline=old.baseline if old else shape.layout.baseline,
        keys=shape.keys,
        ordering=shape.envelope.ordering,
        columns=shape.columns_hash,
        state=old.state if old else StateId(generation=0, admission=0),
        partition_by=old.partition_by if old and stays else target.partition_by,
        lives=old.lives if old and stays else shape.lives_hash,
        view=old.view if old and stays else kept_name(target, "view", old.view if old else ""),
        history=old.history if old and stays else kept_name(target, "history", old.history if old else ""),
        kept=_kept(shape, old),
    )


def _kept(shape: Shape, old: TableProperties | None) -> bool | None:
    """Say whether dropped columns are shown, also where that is over; nothing of a table that never had any."""
    return True if shape.keeps else None if old is None or old.kept is None else False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that apply does: its kind, the SQL where it is SQL, and one sentence why."""

    kind: str
    why: str
    sql: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the step as ``plan --json`` prints it."""
        return {"kind": self.kind, "sql": self.sql, "why": self.why}
