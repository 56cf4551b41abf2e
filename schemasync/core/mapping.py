"""Which subject goes to which table, with every default filled in.

Called by the use cases with the registry's subjects and the configuration, at every tick: it is a pure function of
both, and its result does not depend on the order in which the registry lists its subjects. No name and no location
ever belongs to two tables: without that rule one table's per-run tables could drop another one's data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from schemasync.core.config import Compaction, Config, Names, Policies, Settings, TableEntry, View, is_pattern
from schemasync.core.locations import without_empty_names
from schemasync.core.names import MAX_NAME, expand_pattern, table_name
from schemasync.core.schema import EnvelopeKind
from schemasync.errors import PermanentError, UsageError

DEFAULT_EXCLUDES: tuple[str, ...] = (
    r"__debezium-heartbeat.*",
    r"[^.]+\.transaction-value",  # <prefix>.transaction; with more dots it is a table that is called transaction
    r"(schema-?history|schema-changes|dbhistory)([._-].+)?-value",
    r".+[.-]schema-(history|changes)-value",
    r"(.+\.)?_[^.]+_(gho|ghc|del)-value",  # gh-ost's shadow, changelog and old tables
)
"""Subjects (full match) that hold no table's rows; an entry that names one exactly takes it all the same."""

NOTHING = "has no subjects for us"
NOTHING_FIX = "Check tables: in the configuration, and whether this user may see the subjects."

_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_HOUR = re.compile(r"(?=([0-9]{10}))")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTarget:
    """One subject and the table that it feeds: the configuration of that table, complete.

    ``table``, ``view`` and ``history`` live in ``database``; so do ``base``, ``compactor`` and
    ``incremental_table(hour)`` during a compaction. ``location`` is filled in; ``increments`` is a path below it with
    yyyy, MM, dd and HH in braces. ``key_subject`` is None where the registry has none. Empty ``keys``: those of the key
    subject. Empty ``sequence_by``: by envelope. ``renames`` are (new, old), ``partition_by`` are
    (name, expression). ``metadata``: the view shows our columns, too. ``only_spark``: no other engine
    reads the view. ``shares_name``: a table of this name is configured in another database, too.
    """

    subject: str
    key_subject: str | None
    topic: str
    database: str
    table: str
    view: str
    base: str
    incremental: str
    compactor: str
    history: str
    location: str
    increments: str
    keys: tuple[str, ...]
    sequence_by: tuple[str, ...]
    insert_only: bool
    renames: tuple[tuple[str, str], ...]
    toast: str
    toast_placeholder: str
    compatibility_group: str | None
    adopt: bool
    envelope: EnvelopeKind | None
    metadata: bool
    only_spark: bool = False
    shares_name: bool = False
    partition_by: tuple[tuple[str, str], ...] = ()
    policies: Policies
    compaction: Compaction

    @property
    def full_name(self) -> str:
        """``database.table``."""
        return f"{self.database}.{self.table}"

    @property
    def key_source(self) -> str | None:
        """The subject whose fields are the key, None where the configuration says what is, or nothing does."""
        return None if self.keys or self.insert_only else self.key_subject

    @property
    def name(self) -> str:
        """The shortest name that means this table and no other: ``table``, or `full_name` where that is shared."""
        return self.full_name if self.shares_name else self.table

    def incremental_table(self, hour: str) -> str:
        """Return the name of the per-run table of one hour, given as yyyyMMddHH."""
        return expand_pattern(self.incremental, {"hour": hour})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMapping:
    """All targets, ordered by database and table.

    ``missing`` are targets whose entry names a subject exactly that the registry does not have. ``skipped`` are
    value subjects that `DEFAULT_EXCLUDES` left out. Whoever is part of a problem is not among the targets; of these,
    ``clashing`` are those whose names or places others claim, too. ``named``: each subject, topic and table that is
    part of a problem -> the first such problem.
    """

    targets: tuple[TableTarget, ...]
    missing: tuple[TableTarget, ...]
    skipped: tuple[str, ...]
    problems: tuple[UsageError, ...]
    clashing: tuple[TableTarget, ...] = ()
    named: Mapping[str, UsageError] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no table at all, and nothing in the configuration that says why."""
        return not (self.targets or self.missing or self.problems)

    def problem_of(self, name: str) -> UsageError | None:
        """Return the first problem of this subject, topic or table."""
        return self.named.get(name)


class _Problem(NamedTuple):
    error: UsageError
    subjects: Sequence[str]
    claimed: str = ""
    """``database.table`` that they all want; empty where it is a location, or nothing."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which people may mean one of these subjects."""
        topics = map(_topic, self.subjects)
        return (*self.subjects, *topics, *filter(None, (self.claimed, self.claimed.partition(".")[2])))


def map_subjects(subjects: Sequence[str], config: Config, *, living: AbstractSet[str] = frozenset()) -> TableMapping:
    """Find the table of every value subject that the configuration takes.

    An entry that names a subject exactly wins; then the first entry whose regular expression matches all of it;
    with no entries at all every ``-value`` subject is taken. An expression takes a subject of another name
    (RecordNameStrategy) where it cannot mean a ``-value`` subject, too: ``.*`` means these alone. `Config` promises
    that all expressions compile.

    A subject of ``living``, whose table there is, keeps what others that have none begin to claim.
    """
    present = frozenset(subjects)
    exact, problems = _exact_entries(config.tables, present)
    rest = _no_keys(present - exact.keys())
    wanted, skipped = _by_pattern(rest, config.tables, present)
    problems += _idle(config.tables, wanted, [s for s in rest if s not in wanted and s not in skipped], present)
    entries = {s: e for s, e in exact.items() if e is not None} | wanted
    found = [_target(subject, entry, config, present) for subject, entry in sorted(entries.items())]
    problems += [t for t in found if isinstance(t, _Problem)]
    whole = [t for t in found if isinstance(t, TableTarget)]
    separate, clashes = _separate(sorted(whole, key=lambda t: (t.database, t.table, t.subject)), living)
    names = Counter(t.table for t in separate)
    usable = [replace(t, shares_name=names[t.table] > 1) for t in separate]
    problems += clashes
    return TableMapping(
        targets=tuple(t for t in usable if t.subject in present),
        missing=tuple(t for t in usable if t.subject not in present),
        skipped=skipped,
        problems=tuple(problem.error for problem in problems),
        clashing=tuple(t for t in whole if t not in separate),
        # The first of a name is the last that is put there.
        named={name: problem.error for problem in reversed(problems) for name in problem.names},
    )


def _exact_entries(
    entries: tuple[TableEntry, ...], present: AbstractSet[str]
) -> tuple[dict[str, TableEntry | None], list[_Problem]]:
    """Return the entry of each subject that is named exactly, None where two entries name it."""
    found: dict[str, TableEntry | None] = {}
    places: dict[str, list[str]] = {}
    for index, entry in enumerate(entries):
        if entry.subject in present or not is_pattern(entry.subject):
            places.setdefault(entry.subject, []).append(f"tables[{index}]")
            found[entry.subject] = None if entry.subject in found else entry
    problems = [
        _Problem(
            UsageError(
                f"subject {subject} is named by {len(where)} entries", where=", ".join(where), fix="Keep one of them."
            ),
            [subject],
        )
        for subject, where in sorted(places.items())
        if len(where) > 1
    ]
    return found, problems


def _no_keys(subjects: Iterable[str]) -> list[str]:
    return sorted(s for s in subjects if not s.endswith("-key"))


def _by_pattern(
    candidates: Iterable[str], entries: tuple[TableEntry, ...], present: AbstractSet[str]
) -> tuple[dict[str, TableEntry], tuple[str, ...]]:
    patterns = [e for e in entries if e.subject not in present and is_pattern(e.subject)]
    if not entries:
        patterns = [TableEntry(subject=".*")]
    taken: dict[str, TableEntry] = {}
    skipped: list[str] = []
    for subject in candidates:
        entry = next((e for e in patterns if _takes(e, subject)), None)
        if entry is not None and any(re.fullmatch(p, subject) for p in DEFAULT_EXCLUDES):
            skipped.append(subject)
        elif entry is not None:
            taken[subject] = entry
    return taken, tuple(skipped)


def _takes(entry: TableEntry, subject: str) -> bool:
    return _matches(entry, subject) and (_is_value(subject) or not re.fullmatch(entry.subject, f"{subject}-value"))


def _matches(entry: TableEntry, subject: str) -> bool:
    names = (subject, _topic(subject))
    excluded = any(name == p or re.fullmatch(p, name) for p in entry.exclude for name in names)
    return not excluded and re.fullmatch(entry.subject, subject) is not None


def _is_value(subject: str) -> bool:
    return subject.endswith("-value")


def _idle(
    entries: tuple[TableEntry, ...], wanted: dict[str, TableEntry], left: Sequence[str], present: AbstractSet[str]
) -> Iterator[_Problem]:
    """Yield a problem for each expression that takes nothing, though it matches subjects of other names."""
    busy = {id(entry) for entry in wanted.values()}
    for index, entry in enumerate(entries):
        if entry.subject in present or not is_pattern(entry.subject) or id(entry) in busy:
            continue
        matched = [subject for subject in left if _matches(entry, subject)]
        if matched:
            error = UsageError(
                f"the expression {entry.subject} takes no subject",
                where=f"tables[{index}]",
                why=f"it matches {matched[0]}, but would match {matched[0]}-value, too, and means such subjects alone",
                fix=r"Let it end so that no -value subject matches, in \w+ for .+; or name the subjects exactly.",
            )
            yield _Problem(error, matched[:1])


def _topic(subject: str) -> str:
    return subject.removesuffix("-value")


def _target(subject: str, entry: TableEntry, config: Config, present: AbstractSet[str]) -> TableTarget | _Problem:
    defaults = config.defaults
    view = _merged(defaults.view, entry.view)
    topic = _topic(subject)
    key_subject = f"{topic}-key"
    location = entry.location or defaults.location
    try:
        table = _table(subject, entry)
        database = entry.database or defaults.database
        return TableTarget(
            subject=subject,
            key_subject=key_subject if key_subject in present else None,
            topic=topic,
            database=database,
            table=table,
            **_names(_merged(defaults.names, entry.names), table),
            location=_place(location, topic=topic, table=table, database=database),
            increments=(entry.increments or defaults.increments).strip("/"),
            keys=entry.keys,
            sequence_by=entry.sequence_by,
            insert_only=entry.insert_only,
            renames=tuple(sorted(entry.renames.items())),
            toast=entry.toast,
            toast_placeholder=entry.toast_placeholder,
            compatibility_group=entry.compatibility_group,
            adopt=entry.adopt,
            envelope=entry.envelope,
            partition_by=tuple(entry.partition_by.items()),
            metadata=view.metadata,
            only_spark=_only_spark(view, config),
            shares_name=False,  # until all tables are known
            policies=_merged(defaults.policies, entry.policies),
            compaction=_merged(defaults.compaction, entry.compaction),
        )
    except PermanentError as error:
        return _Problem(UsageError(error.what, where=f"subject {subject!r}", why=error.why, fix=error.fix), [subject])


METASTORES = ("hive.metastore.uris", "javax.jdo.option.ConnectionURL")
"""Settings by which Spark keeps its tables where others may, too."""


def _only_spark(view: View, config: Config) -> bool:
    """Tell whether Spark alone reads a view: nobody else opens the Derby that is embedded in its process."""
    if view.readers != "auto":
        return view.readers == "spark"
    elsewhere = any(name.endswith(METASTORES) for name in config.spark.conf)
    return config.metastore.kind == "embedded" and not elsewhere


_S = TypeVar("_S", bound=Settings)


def _merged(default: _S, own: _S) -> _S:
    """Return the default with the keys that the entry itself sets."""
    return default.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})


def _names(names: Names, table: str) -> dict[str, str]:
    filled = {k: expand_pattern(p, {"table": table, "hour": "{hour}"}) for k, p in names.model_dump().items()}
    for name in filled.values():
        if len(expand_pattern(name, {"hour": "yyyyMMddHH"})) > MAX_NAME:
            raise UsageError(
                f"the name {name} is longer than {MAX_NAME} characters",
                fix="Set a shorter `table:` or `names:` for it.",
            )
    return filled


def _place(location: str, *, topic: str, table: str, database: str) -> str:
    # A registry may hold any text as a subject; what Kafka allows in a topic is safe in a path, but for dots alone.
    if "{topic}" in location and not (_TOPIC.fullmatch(topic) and topic.strip(".")):
        raise UsageError(
            "the subject is not the name of a topic, so it cannot name a directory",
            why="a topic has letters, digits, dots, _ and - only",
            fix="Set a `location:` without {topic} for it, or exclude it.",
        )
    values = {"topic": topic, "table": table, "database": database}
    return without_empty_names(expand_pattern(location, values))


def _table(subject: str, entry: TableEntry) -> str:
    if entry.table is None:
        return table_name(_topic(subject))
    values = {"topic": table_name(_topic(subject))} if "{topic}" in entry.table else {}
    pattern = re.compile(entry.subject if is_pattern(entry.subject) else "")
    match = pattern.fullmatch(subject)
    groups = match.groupdict(default="") if match else dict.fromkeys(pattern.groupindex, "")
    return table_name(expand_pattern(entry.table, values | groups))


def _separate(targets: Sequence[TableTarget], living: AbstractSet[str]) -> tuple[list[TableTarget], list[_Problem]]:
    """Part the targets that can live side by side from those that cannot, and say why."""
    problems = []
    told: set[frozenset[str]] = set()
    guilty: set[str] = set()
    for name, claims in _clashes(targets):
        parties = frozenset(target.subject for target, _ in claims)
        if parties in told:
            continue
        told.add(parties)
        keeper = parties & living if len(parties) > 1 else frozenset()
        others = parties - keeper if len(keeper) == 1 else parties
        guilty |= others
        roles = " and as ".join(f"the {role} of {target.subject}" for target, role in claims)
        kept = f"{next(iter(keeper))}, whose table is there, keeps it. " if others != parties else ""
        error = UsageError(
            f"{name} is claimed {len(claims)} times",
            where="tables",
            why=f"as {roles}",
            fix=f"{kept}Give one of them another table, names or location, or exclude a subject.",
        )
        claimed = "" if claims[0][1] == "location" else name
        problems.append(_Problem(error, [t.subject for t, _ in claims if t.subject in others], claimed))
    return [t for t in targets if t.subject not in guilty], problems


def _claims(target: TableTarget) -> Iterator[tuple[str, str]]:
    for role in ("table", "view", "base", "incremental", "compactor", "history"):
        yield f"{target.database}.{getattr(target, role)}", role
    yield target.location, "location"


def _clashes(targets: Iterable[TableTarget]) -> Iterator[tuple[str, list[tuple[TableTarget, str]]]]:
    owners: dict[str, list[tuple[TableTarget, str]]] = {}
    for target in targets:
        for name, role in _claims(target):
            owners.setdefault(name, []).append((target, role))
    for name, claims in owners.items():
        hourly = (f"{name[: found.start()]}{{hour}}{name[found.end(1) :]}" for found in _HOUR.finditer(name))
        everyone = claims + [claim for other in hourly for claim in owners.get(other, ())]
        if len(everyone) > 1:
            yield name, everyone
