"""What apply would do, step by step with its SQL, and why: the value that ``plan`` prints and ``apply`` executes.

Planning reads and decides; it is given no way to write. The fingerprint covers what was seen, what would be done to
schemas and what rows of every version then read, so that apply can tell when any of it has moved; landed files come and
go and are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from schemasync.app.dependents import ReadingViews
from schemasync.app.forsaken import forsaken
from schemasync.app.history_table import plan_history
from schemasync.app.inspecting import TableView, is_silence, look, map_tables, select
from schemasync.app.landed import Landed, look_at, of_strays, of_unclear_key, strays_beside
from schemasync.app.migrating import with_values_checked
from schemasync.app.rekeying import changes_key, key_is_unclear, keys_before, with_keys_checked
from schemasync.app.repairing import (
    REPAIRS,
    find_drift,
    kept_on_view,
    old_history_steps,
    old_view_steps,
    partition_steps,
    repair_steps,
)
from schemasync.app.view_texts import LeftTexts, text_of, view_select, view_statement
from schemasync.app.workspace import Workspace
from schemasync.core import ddl
from schemasync.core.amounts import many
from schemasync.core.avro import read_key_schema
from schemasync.core.canonical import fingerprint
from schemasync.core.changes import Change
from schemasync.core.compaction import plan_rekey
from schemasync.core.dependents import Impact, renamed_view, taken_over
from schemasync.core.describe import change_json, diagnostic_json
from schemasync.core.diagnostics import Diagnostic, diagnose, names_held_file, refused
from schemasync.core.drift import Drift
from schemasync.core.envelope import has_partial_deletes
from schemasync.core.manifest import Contents, Segment
from schemasync.core.mapping import TableMapping, TableTarget
from schemasync.core.migration import to_rewrite
from schemasync.core.names import Dialect
from schemasync.core.plan import Step, beyond_hive, next_properties
from schemasync.core.policy import Verdict
from schemasync.core.ports import HiveTable
from schemasync.core.properties import GENERATION, STATE, TableProperties, made_by_us, write_properties
from schemasync.core.renamed import is_old_view, left_alone, old_names, with_old_history
from schemasync.core.shape import Shape, of_wider_key
from schemasync.core.step_kinds import (
    ADD_COLUMNS,
    ADMIT,
    CREATE_DATABASE,
    CREATE_TABLE,
    DROP_OLD_HISTORY,
    DROP_OLD_VIEW,
    DROP_TABLE,
    REBUILD,
    REPAIR_PARTITIONS,
    REPLACE_VIEW,
    RESTORE_VIEW,
    SET_VERSION,
)
from schemasync.core.toast import unknown_values
from schemasync.core.view_drift import as_shown, same_text, view_drift, view_reasons
from schemasync.errors import (
    RegistryError,
    RegistryUnavailableError,
    SchemaError,
    SchemasyncError,
    StorageError,
    UsageError,
    as_ours,
)
from schemasync.io.logs import redact

_DROPS = frozenset({DROP_TABLE, DROP_OLD_VIEW, DROP_OLD_HISTORY})
SCHEMA_STEPS = REPAIRS | _DROPS | {CREATE_TABLE, REBUILD, ADD_COLUMNS, REPLACE_VIEW, SET_VERSION}
"""Steps that change schemas; the others bring in or clean up data."""

RESTORING_STEPS = frozenset({REPAIR_PARTITIONS, RESTORE_VIEW, DROP_OLD_VIEW})
"""Steps that put right what is in force, whatever becomes of the schema: also for a table that is held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """The plan of one table. ``view`` is what was looked at, None where that failed (then only diagnostics count).

    ``rewrite`` are the segments whose rows the new view converts until the next compaction rewrites them; ``waiting``
    says how many landed files the next apply cannot admit.
    """

    target: TableTarget
    verdict: Verdict
    changes: tuple[Change, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    steps: tuple[Step, ...] = ()
    current_version: int | None = None
    desired_version: int | None = None
    rewrite: tuple[Segment, ...] = ()
    waiting: int = 0
    seen: str = ""
    properties: TableProperties | None = None
    view: TableView | None = None
    error: SchemasyncError | None = None

    @property
    def held(self) -> bool:
        """Tell whether something about the table waits for a person: its schema, or a landed file."""
        return self.verdict is Verdict.HOLD or names_held_file(self.diagnostics)

    @property
    def pending(self) -> bool:
        """Tell whether apply would change schemas."""
        return self.verdict is not Verdict.HOLD and any(step.kind in SCHEMA_STEPS for step in self.steps)

    @property
    def due(self) -> bool:
        """Tell whether apply would change the table or its view, be it only to put right what is in force."""
        return self.pending or any(step.kind in RESTORING_STEPS for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """Return what ``plan --json`` and ``check --json`` both say of the table."""
        return {
            "table": self.target.table,
            "database": self.target.database,
            "subject": self.target.subject,
            "current_version": self.current_version,
            "desired_version": self.desired_version,
            "verdict": self.verdict.value,
            "changes": [change_json(change) for change in self.changes],
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
            "steps": [step.to_json() for step in self.steps],
            "cost": {"files": self.files, "bytes": self.bytes},
        }

    @property
    def unread(self) -> bool:
        """Tell whether the table is there, and is ours, and which version it has cannot be read."""
        table = self.view.inspected.table if self.view else None
        return table is not None and self.current_version is None and made_by_us(table.properties)

    @property
    def files(self) -> int:
        """Files of the table that the changes make the next compaction rewrite."""
        return sum(len(segment.files) for segment in self.rewrite)

    @property
    def bytes(self) -> int:
        """Their size."""
        return sum(segment.bytes for segment in self.rewrite)

    @property
    def landed(self) -> int:
        """Landed files that are not in the table yet."""
        return len(self.view.pending) if self.view else 0

    @property
    def fingerprint(self) -> str:
        """Hash of what was seen and of what would be done to the schema."""
        steps = [step.to_json() | {"sql": sql} for step, sql in self._schema_steps]
        return fingerprint([self.target.table, *self._aim, steps, self.seen])

    def within(self, other: TablePlan) -> bool:
        """Tell whether this would do nothing to the schema but what another plan of the table would."""
        steps, others = ({(step.kind, sql) for step, sql in plan._schema_steps} for plan in (self, other))
        return self._aim == other._aim and steps <= others

    @property
    def _schema_steps(self) -> list[tuple[Step, str]]:
        """The steps that change the schema, and their SQL but for that of the view, which names the moment's segments.

        What it shows is part of what was seen.
        """
        return [
            (step, "" if step.kind == REPLACE_VIEW else step.sql) for step in self.steps if step.kind in SCHEMA_STEPS
        ]

    @property
    def _aim(self) -> tuple[Any, ...]:
        # A key's next version may have the same columns.
        written = self.properties and _stateless(write_properties(replace(self.properties, key_version=0)))
        return self.verdict.value, self.desired_version, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plans of all tables that were asked for, and what in the configuration stands in the way.

    ``skipped`` are the subjects that `left_out` names, ``diagnostics`` what `forsaken` tells, where all tables were
    asked for.
    """

    tables: tuple[TablePlan, ...]
    problems: tuple[UsageError, ...] = ()
    skipped: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Hash of all tables' fingerprints."""
        return fingerprint([table.fingerprint for table in self.tables])

    def to_json(self) -> dict[str, Any]:
        """Return what ``plan --json`` prints."""
        return {
            "tables": [{**table.to_json(), "fingerprint": table.fingerprint} for table in self.tables],
            "fingerprint": self.fingerprint,
            "problems": [str(problem) for problem in self.problems],
            "skipped": list(self.skipped),
            "diagnostics": [diagnostic_json(d) for d in self.diagnostics],
        }


def plan(workspace: Workspace, names: Sequence[str] = ()) -> Plan:
    """Plan the named tables, all where none is named.

    Raises:
        UsageError: a name is no configured table.
        RegistryUnavailableError: the registry does not answer.
    """
    mapping = map_tables(workspace)
    readers = ReadingViews(workspace.metastore)
    tables = (plan_table(workspace, target) for target in select(mapping, names))
    return Plan(
        tables=tuple(_with_readers(readers, table) for table in tables),
        problems=mapping.problems,
        skipped=() if names else left_out(workspace, mapping),
        diagnostics=forsaken(workspace, mapping, names),
    )


def left_out(workspace: Workspace, mapping: TableMapping) -> tuple[str, ...]:
    """Return the subjects that an expression of the configuration matches, and that are called like no table's.

    One of them may be a table all the same. Without a configured expression nobody has asked for them.
    """
    return mapping.skipped if workspace.config.tables else ()


def _with_readers(readers: ReadingViews, plan: TablePlan) -> TablePlan:
    """Add what the plan does to views that read the table."""
    told = readers.troubled_by(plan.view.decision, _dropped(plan, plan.view)) if plan.view else ()
    return replace(plan, diagnostics=(*plan.diagnostics, *told))


def _dropped(plan: TablePlan, found: TableView) -> Impact:
    """Return what goes away with what the plan drops."""
    kinds = {step.kind for step in plan.steps}
    table, desired, old = found.inspected.table, found.decision.desired, found.inspected.old_view
    over = taken_over(plan.target, table, desired) if DROP_TABLE in kinds and table and desired else {}
    return {**over, **(renamed_view(plan.target, old.name) if DROP_OLD_VIEW in kinds and old else {})}


def plan_table(workspace: Workspace, target: TableTarget) -> TablePlan:
    """Plan one table; its trouble becomes a finding, unless nothing can be known about any table."""
    try:
        planned = _with_wider_key(workspace, lay_out_steps(workspace, look(workspace, target)))
        return _with_strays(workspace, with_landed(workspace, planned))
    except Exception as error:
        if is_silence(error, workspace.registry):
            raise
        failure = as_ours(error)
        return TablePlan(
            target=target,
            verdict=Verdict.HOLD,
            diagnostics=(
                refused(error) if isinstance(error, SchemaError) else diagnose("SS217", redact(str(failure))),
            ),
            error=failure,
        )


def with_landed(workspace: Workspace, plan: TablePlan) -> TablePlan:
    """Add what is wrong with files that landed: what apply will find when it admits them."""
    shape = plan.view.decision.effective if plan.view else None
    if plan.view is None or not plan.view.pending:
        return plan
    if shape is None:
        return replace(plan, waiting=plan.landed)
    if not admits(plan):
        return replace(plan, diagnostics=(*plan.diagnostics, of_unclear_key(plan.landed)), waiting=plan.landed)
    try:
        landed = look_at(workspace, shape, plan.target, plan.view.pending)
    except StorageError as error:
        # All else is known, and apply does that first.
        landed = Landed(findings=(diagnose("SS301", str(error)),))
    waiting = plan.landed - (0 if landed.blocked else len(landed.ready))
    return replace(plan, diagnostics=(*plan.diagnostics, *landed.findings), waiting=waiting)


def _with_strays(workspace: Workspace, plan: TablePlan) -> TablePlan:
    """Add what lies beside a table's increment directories: ``increments:`` may have been changed, or was never right.

    Only a plan says so: every tick would list directories that nobody has to read.
    """
    target = plan.target
    if plan.view is None:
        return plan
    manifest = plan.view.manifest
    admitted = {file.path for file in manifest.admitted} if manifest else set()
    found = strays_beside(workspace.storage(target).lake, target.increments)
    beside = [file for file in found if file.path not in admitted]
    return replace(plan, diagnostics=(*plan.diagnostics, *of_strays(beside, target.increments)))


def _with_wider_key(workspace: Workspace, plan: TablePlan) -> TablePlan:
    """Add what is odd about configured keys beside those of the key subject, which nothing else asks for.

    Only a plan does: every tick would ask the registry one thing more of each such table. Where it does not answer
    nothing is added: who names the key may do so because the key's subject cannot be read.
    """
    target, registry = plan.target, workspace.registry
    shape = plan.view.decision.effective if plan.view else None
    if not target.keys or target.key_subject is None or shape is None:
        return plan
    if not has_partial_deletes(shape.envelope, shape.version.event):
        return plan
    source_key: Sequence[str] = ()
    with suppress(SchemaError, RegistryError, RegistryUnavailableError):
        if versions := registry.versions(target.key_subject):
            source_key = read_key_schema(registry.schema(target.key_subject, versions[-1])) or ()
    return replace(plan, diagnostics=(*plan.diagnostics, *of_wider_key(target, shape, source_key)))


def admits(plan: TablePlan) -> bool:
    """Tell whether landed files can be admitted: not while it is unclear under which key they were written."""
    return not (plan.verdict is Verdict.HOLD and plan.view is not None and key_is_unclear(plan.view.decision))


def _beyond_hive(found: TableView) -> Iterator[Diagnostic]:
    """Say of a view that others than Spark cannot read, while rows are as they are; of a held one nothing changes."""
    decision, manifest = found.decision, found.manifest
    if decision.effective is not None and manifest is not None and decision.verdict is not Verdict.HOLD:
        yield from beyond_hive(decision.target, decision.effective, manifest.segment_versions)


def lay_out_steps(workspace: Workspace, found: TableView) -> TablePlan:
    """Turn a decision into steps."""
    found = with_keys_checked(workspace, with_values_checked(workspace, found))
    decision, target = found.decision, found.decision.target
    properties = next_properties(decision)
    drift, texts = find_drift(workspace, found), LeftTexts(workspace, found)
    steps = tuple(partition_steps(drift))
    shape = decision.effective
    if shape is not None and properties is not None and decision.verdict is not Verdict.HOLD:
        builders = (_creation, _rebuild, _columns, _view, _old_names, _watermark)
        context = _Context(
            workspace=workspace, found=found, shape=shape, properties=properties, drift=drift, texts=texts
        )
        steps += tuple(step for build in builders for step in build(context))
    if decision.verdict is Verdict.HOLD and decision.current is not None and found.manifest is not None:
        steps += tuple(_restored_view(workspace, found, decision.current, texts))
    steps += tuple(_data_steps(found, shape))
    recording, taken = _history(found, shape, properties)
    steps += recording
    verdict = decision.verdict
    if verdict is Verdict.NONE and any(step.kind in SCHEMA_STEPS for step in steps):
        verdict = Verdict.EVOLVE
    return TablePlan(
        target=target,
        verdict=verdict,
        changes=decision.changes,
        diagnostics=(
            *decision.diagnostics,
            *_beyond_hive(found),
            *drift.diagnostics,
            *_view_drift(found, texts),
            *left_alone(found.inspected.old_view, target),
            *taken,
            *unknown_values(target, _base(found)),
        ),
        steps=steps,
        current_version=decision.properties.version if decision.properties else None,
        desired_version=_desired_version(found),
        rewrite=_rewrite(found),
        seen=_seen(workspace, found, texts),
        properties=properties,
        view=found,
    )


def _history(
    found: TableView, shape: Shape | None, properties: TableProperties | None
) -> tuple[tuple[Step, ...], tuple[Diagnostic, ...]]:
    """Say what apply will do with the history, under the name that it has then."""
    target, inspected = found.decision.target, found.inspected
    named = target if properties is None else with_old_history(target, properties, inspected.old_history)
    table = inspected.history_table if named is target else inspected.old_history
    return plan_history(table, named, shape, properties)


def _rewrite(found: TableView) -> tuple[Segment, ...]:
    shape, current = found.decision.effective, found.decision.current
    if shape is None or current is None or found.manifest is None:
        return ()
    if _rebuilt(found) is not None:
        return found.manifest.segments
    return to_rewrite(shape, found.manifest) if shape.version != current.version else ()


def _base(found: TableView) -> tuple[Segment, ...]:
    return found.manifest.base if found.manifest else ()


def _desired_version(found: TableView) -> int | None:
    history = found.inspected.history
    return history.newest.version if history else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    workspace: Workspace
    found: TableView
    shape: Shape
    properties: TableProperties
    drift: Drift
    texts: LeftTexts

    @property
    def target(self) -> TableTarget:
        return self.found.decision.target


def _creation(context: _Context) -> Iterator[Step]:
    decision, target, workspace = context.found.decision, context.target, context.workspace
    if not decision.create:
        return
    database = ddl.create_database(target.database, Dialect.SPARK)
    yield Step(kind=CREATE_DATABASE, why="tables need it; kept where it exists", sql=workspace.text(database))
    if decision.drop_first:
        drop = ddl.drop_table(target.database, target.table)
        yield Step(
            kind=DROP_TABLE,
            why="adopt: true takes over an external table that was not ours; its files stay",
            sql=workspace.text(drop),
        )
    create = ddl.create_table(target, context.shape, context.properties, Dialect.SPARK)
    why = f"{target.subject} version {context.properties.version} has no table yet"
    yield Step(kind=CREATE_TABLE, why=why, sql=workspace.text(create))


def _columns(context: _Context) -> Iterator[Step]:
    if context.found.decision.create:
        return
    yield from repair_steps(context.drift)
    if missing := context.drift.missing:
        statement = ddl.add_columns(context.target, missing)
        yield Step(
            kind=ADD_COLUMNS,
            why=f"{', '.join(c.name for c in missing)}: appended, never in between, because Hive maps partitions by "
            "position",
            sql=context.workspace.text(statement),
        )


def _rebuild(context: _Context) -> Iterator[Step]:
    found = context.found
    if _rebuilt(found) is not None:
        old = ", ".join(found.decision.properties.keys) if found.decision.properties else ""
        yield Step(kind=REBUILD, why=f"under the key ({old}), so that every row is in the base once")


def _rebuilt(found: TableView) -> Contents | None:
    """Return what the base holds once it was rebuilt for another key, None where that is not needed."""
    current, desired = found.decision.current, found.decision.desired
    if not changes_key(found.decision) or found.manifest is None or current is None or desired is None:
        return None
    fold = plan_rekey(found.manifest, keys_before(current, desired))
    if fold is None:
        return None
    return Contents(
        versions=frozenset({current.version.version}),
        base=tuple((shard.shard, shard.shard) for shard in fold.shards),
        unique=found.manifest.keyed,
    )


def _view(context: _Context) -> Iterator[Step]:
    found, shape = context.found, context.shape
    view, old = found.inspected.view, found.inspected.old_view
    # What people wrote on it goes along to another name.
    before = old if view is None and is_old_view(old, context.target) else view
    kept = kept_on_view(before, found.decision, shape)
    rebuilt = _rebuilt(found)
    workspace, target = context.workspace, context.target
    # Where it is only that of the state before, it needs no step: every run makes it follow the state in force.
    left = (view_select(workspace, target, shape, rebuilt),) if rebuilt else context.texts.of(shape)
    for reason in view_reasons(view, target, shape, text_of(view, left), kept):
        yield Step(kind=REPLACE_VIEW, why=reason, sql=view_statement(workspace, target, shape, left[0], kept=kept))


def _view_drift(found: TableView, texts: LeftTexts) -> Iterator[Diagnostic]:
    """Name what is not as it was left of the view of a table that is ours."""
    decision, view = found.decision, found.inspected.view
    current, effective = decision.current, decision.effective
    if found.manifest is None or current is None or effective is None:
        return
    if view is None and decision.properties is not None and old_names(decision.target, decision.properties).view:
        return  # it never was there
    kept = kept_on_view(view, decision, current)
    left = texts.of(current, effective)
    reasons = view_reasons(view, decision.target, current, text_of(view, left), kept)
    yield from view_drift(view, decision.target, left=left, reasons=reasons, kept=kept)


def _restored_view(workspace: Workspace, found: TableView, current: Shape, texts: LeftTexts) -> Iterator[Step]:
    """Bring back the view of a held table: a hold means that it goes on answering, under its name of now."""
    if found.inspected.view is None:
        select, *_ = texts.of(current)
        sql = view_statement(workspace, found.decision.target, current, select)
        yield Step(kind=RESTORE_VIEW, why="the table is held, and its view is missing", sql=sql)
    yield from old_view_steps(workspace, found.decision.target, found.inspected.old_view)


def _old_names(context: _Context) -> Iterator[Step]:
    workspace, target, inspected = context.workspace, context.target, context.found.inspected
    yield from old_view_steps(workspace, target, inspected.old_view)
    yield from old_history_steps(workspace, target, inspected.old_history)


def _watermark(context: _Context) -> Iterator[Step]:
    old = context.found.decision.properties
    if context.found.decision.create or old is None or (old == context.properties and not context.drift.properties):
        return
    edited = ", ".join(context.drift.properties)
    new, target = context.properties, context.target
    said = f"the table now is version {new.version}"
    if old == new:
        said = f"{edited} put back"
    elif replace(old, view=new.view, history=new.history) == new:
        said = f"its view is {target.view}, its history {target.history}"
    yield Step(kind=SET_VERSION, why=f"{said}; written last, guarded by the state that was seen")


def _data_steps(found: TableView, shape: Shape | None) -> Iterator[Step]:
    if found.pending and shape is not None:
        size = sum(f.bytes for f in found.pending)
        landed = many(len(found.pending), "landed file")
        yield Step(kind=ADMIT, why=f"{landed} ({size} bytes) not in the table yet")


def _seen(workspace: Workspace, found: TableView, texts: LeftTexts) -> str:
    table, view, current = found.inspected.table, found.inspected.view, found.decision.current
    desired = found.decision.effective
    shown = None if desired is None else _shown(workspace, found.decision.target, desired)
    told = found.decision.target if current is None else as_shown(found.decision.target, current, view)
    if told is not found.decision.target:
        # Until a person lets that through it follows with the columns that it has.
        texts = LeftTexts(workspace, replace(found, decision=replace(found.decision, target=told)))
    ours = () if current is None else texts.of(current)
    if view is not None and any(same_text(view.query, text) for text in ours):
        # It follows the state in force, which moves with every admission.
        view = replace(view, view_text="", expanded_text="")
    return fingerprint([_table_json(table), _table_json(view), shown])


def _shown(workspace: Workspace, target: TableTarget, shape: Shape) -> list[Any]:
    """Return what the view shows, without the segments of the moment.

    It is rendered as it would be of no known state. What rows of older versions read in it follows from all versions:
    a default is that of the one which added the column.
    """
    view = view_statement(workspace, target, shape, view_select(workspace, target, shape, Contents()))
    return [view, shape.fill_defaults, [[version.version, version.fingerprint] for version in shape.history.versions]]


def _table_json(table: HiveTable | None) -> Any:
    if table is None:
        return None
    ours = {k: v for k, v in table.properties.items() if k.startswith("schemasync.")}
    return [[[c.name, c.type] for c in table.columns], table.kind, table.query, _stateless(ours)]


def _stateless(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Leave out the state, which moves with every admission: which schema it belongs to is in the other properties."""
    return {k: v for k, v in properties.items() if k not in {STATE, GENERATION}}
