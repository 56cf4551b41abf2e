from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from schemasync.core import plan
from schemasync.core.changes import AddColumn, ChangeDoc, ChangeEnvelope, ChangeKey, DropColumn, RenameColumn
from schemasync.core.config import Compaction
from schemasync.core.diagnostics import diagnose
from schemasync.core.diff import retypes
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning
from schemasync.core.history import History, read_history
from schemasync.core.manifest import StateId
from schemasync.core.plan import Decision, Inspected, Step, beyond_hive, decide, next_properties, properties_of
from schemasync.core.policy import Verdict
from schemasync.core.ports import HiveColumn, HiveTable
from schemasync.core.projection import Carried, carried
from schemasync.core.properties import SUBJECT, TableProperties, write_properties
from schemasync.core.reshape import Keep
from schemasync.core.schema import Column, Envelope, EnvelopeKind, OrderingField
from schemasync.core.shape import Shape, history_of, of_wider_key, shape_of
from schemasync.core.types import Primitive
from tests.core.builders import (
    BIGINT,
    DATE,
    DEBEZIUM,
    FLAT,
    INT,
    MICROS,
    MILLIS,
    PLAIN,
    STRING,
    col,
    histories,
    history,
    rec,
    target,
    union,
    version,
)

ID = col("id", BIGINT, nullable=False)
NAME = col("name", STRING)
TWO = history((ID, NAME), (ID, NAME, col("age")))


def hive(name: str = "student", *, kind: str = "EXTERNAL_TABLE", **properties: str) -> HiveTable:
    return HiveTable(
        database="lake", name=name, kind=kind, columns=(), partition_keys=(), location="", properties=properties
    )


def applied(found: History, number: int, **more: Any) -> TableProperties:
    """Return the properties of a table that was made from the history's first version and now is at this one."""
    at = found.at(number)
    assert at is not None
    key = more.pop("key", ("id",))
    shape, _ = shape_of(target(), found, at, key=key, baseline=more.get("baseline", 1))
    given_: dict[str, Any] = {
        "subject": at.subject,
        "version": number,
        "schema_id": at.schema_id,
        "fingerprint": at.fingerprint,
        "baseline": 1,
        "keys": ("id",),
        "ordering": at.envelope.ordering,
        "columns": shape.columns_hash,
        "lives": shape.lives_hash,
        "state": StateId(generation=0, admission=0),
    }
    return TableProperties(**(given_ | more))


def seen(
    found: History | None,
    properties: TableProperties | None = None,
    *,
    key: tuple[str, ...] | None = ("id",),
    options: dict[str, Any] | None = None,
    **more: Any,
) -> Decision:
    """Decide a table with these properties, or one that does not exist."""
    table = hive(**write_properties(properties)) if properties else None
    inspected = Inspected(target=target(**(options or {})), history=found, key=key, table=table, view=None)
    return decide(replace(inspected, **more))


def outcome(decision: Decision) -> tuple[Verdict, list[str]]:
    return decision.verdict, [d.code for d in decision.diagnostics]


def test_a_table_that_does_not_exist_is_created_from_the_newest_version() -> None:
    decision = seen(TWO)
    assert outcome(decision) == (Verdict.EVOLVE, [])
    assert decision.changes == tuple(AddColumn(column=c, position=n) for n, c in enumerate(TWO.newest.columns))
    assert decision.desired is not None
    assert (decision.create, decision.drop_first, decision.desired.layout.baseline) == (True, False, 2)
    assert decision.effective is decision.desired


def test_what_older_rows_read_is_told_of_the_version_that_added_the_column() -> None:
    """Where several versions come at once, the newest may say something else."""
    found = history(
        (ID,),
        (ID, col("b"), col("e", nullable=False, default="1"), col("n", nullable=False, default="7")),
        (ID, col("b", nullable=False, default="42"), col("e", nullable=False, default="2"), col("n")),
    )
    assert [f"{d.code} {d.message}" for d in seen(found, applied(found, 1)).diagnostics] == [
        "SS101 column b was added",
        "SS102 column e was added NOT NULL: older rows read its default 1",
        "SS102 column n was added NOT NULL: older rows read its default 7",
    ]


def test_a_table_of_the_newest_version_needs_nothing() -> None:
    decision = seen(TWO, applied(TWO, 2))
    assert (outcome(decision), decision.changes) == ((Verdict.NONE, []), ())


def test_a_tables_next_properties_are_those_of_the_shape_that_it_will_have() -> None:
    created = seen(TWO)
    assert created.desired is not None
    assert next_properties(created) == properties_of(created.target, created.desired)
    old = applied(TWO, 1, state=StateId(generation=3, admission=7))
    assert next_properties(seen(TWO, old)) == replace(applied(TWO, 2), state=old.state)


def test_a_table_goes_on_with_its_properties_where_no_shape_of_it_is_known() -> None:
    old = applied(TWO, 2)
    assert next_properties(seen(None, old)) == old
    assert next_properties(seen(None)) is None


def test_a_held_table_keeps_its_partitions_and_names_of_now() -> None:
    found = history((ID, NAME), (ID, col("name", INT)))
    old = applied(found, 1, view="student_v")
    held = seen(found, old, options={"policies": {"retype": "hold"}})
    assert (held.verdict, next_properties(held)) == (Verdict.HOLD, old)


def test_that_columns_were_kept_is_said_until_the_end() -> None:
    found = history((ID, NAME), (ID,))
    keeping = seen(found, applied(found, 1), options={"policies": {"drop": "keep"}})
    later = next_properties(keeping)
    assert (later and later.kept) is True
    over = next_properties(seen(found, later, options={"policies": {"drop": "drop"}}))
    assert (over and over.kept) is False


def test_columns_that_would_be_told_apart_otherwise_than_when_they_were_applied_hold() -> None:
    renamed_late = history((ID, NAME), (ID, col("full_name", STRING)))
    said = read_history(renamed_late.versions, renames={"full_name": "name"})
    decision = seen(said, applied(renamed_late, 2))
    assert (outcome(decision), decision.current) == ((Verdict.HOLD, ["SS408"]), None)


ADDRESS, MOVED = rec(zip=STRING), rec(plz=STRING)


@pytest.mark.parametrize(
    ("rows", "renames"),
    [
        (((ID, col("a", INT)), (ID, col("b", BIGINT))), {"b": "a"}),
        (((col("id", INT), NAME), (col("pupil", BIGINT), NAME)), {"pupil": "id"}),
        (((ID, col("address", ADDRESS)), (ID, col("address", MOVED))), {"address.plz": "address.zip"}),
    ],
    ids=["widened", "key", "member"],
)
def test_a_rename_that_comes_with_another_type_is_told_apart_too(
    rows: tuple[tuple[Column, ...], ...], renames: dict[str, str]
) -> None:
    silent = history(*rows)
    said = read_history(silent.versions, renames=renames)
    key = (rows[1][0].name,)
    for was, now in ((silent, said), (said, silent)):
        properties = applied(was, 2, keys=key, key=key)
        assert outcome(seen(now, properties, key=key)) == (Verdict.HOLD, ["SS408"])
        assert outcome(seen(was, properties, key=key)) == (Verdict.NONE, [])


def test_another_way_with_types_tells_columns_apart_otherwise() -> None:
    rows = (version(1, ID, col("a", BIGINT)), version(2, ID, col("a", STRING)))
    split, whole = (history_of(target(policies={"retype": p}), rows) for p in ("variant", "migrate"))
    assert outcome(seen(split, applied(whole, 2), options=VARIANT)) == (Verdict.HOLD, ["SS408"])
    assert outcome(seen(whole, applied(split, 2))) == (Verdict.HOLD, ["SS408"])


@pytest.mark.parametrize(
    ("rows", "number", "fix"),
    [
        # Before it is applied the policy can be set, afterwards that would tell the column apart otherwise (SS408).
        ([col("a", BIGINT), col("a", STRING)], 1, "to variant"),
        ([col("a", BIGINT), col("a", STRING), col("a", DATE)], 2, ""),
        ([col("a", BIGINT), col("a", DATE)], 1, "policies.retype to variant"),
    ],
)
def test_a_variant_is_advised_where_the_policy_can_still_be_set(rows: list[Column], number: int, fix: str) -> None:
    versions = [version(n, ID, column) for n, column in enumerate(rows, start=1)]
    found = history_of(target(), versions)
    properties = applied(found, number)
    (finding,) = seen(found, properties).diagnostics
    assert finding.code in {"SS113", "SS120"}
    assert ("variant" in finding.fix, fix in finding.fix) == (bool(fix), True)
    # It is as the advice says.
    split = history_of(target(**VARIANT), versions)
    codes = [d.code for d in seen(split, properties, options=VARIANT).diagnostics]
    assert codes == (["SS114"] if fix else ["SS408"])


def test_the_history_is_told_anew_once_however_many_columns_are_retyped(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is all columns of all versions."""
    told: list[History] = []

    def telling(*given: Any) -> History:
        told.append(history_of(*given))
        return told[-1]

    monkeypatch.setattr(plan, "history_of", telling)
    versions = [version(n, ID, *(col(f"a{m}", type_) for m in range(9))) for n, type_ in enumerate([BIGINT, STRING], 1)]
    found = history_of(target(), versions)
    assert outcome(seen(found, applied(found, 1))) == (Verdict.MIGRATE, ["SS113"] * 9)
    assert len(told) == 1


@pytest.mark.parametrize("after", [STRING, DATE])
def test_no_variant_of_a_key_is_advised(after: Leaf) -> None:
    found = history((ID, NAME), (col("id", after, nullable=False), NAME))
    diagnostics = seen(found, applied(found, 1)).diagnostics
    told = [d for d in diagnostics if d.code in {"SS113", "SS120"}]
    assert told
    assert [d.fix for d in told if "variant" in d.fix] == []


def test_no_variant_is_advised_for_a_key_that_was_text() -> None:
    found = history((col("id", STRING, nullable=False), NAME), (ID, NAME))
    fixes = {d.code: d.fix for d in seen(found, applied(found, 1)).diagnostics}
    assert "variant" not in fixes["SS120"] + fixes["SS113"]


BY = (("bucket", "pmod(id, 4)"), ("first", "left(name, 1)"))


def partitioned(found: History, number: int, *by: tuple[str, str], now: tuple[tuple[str, str], ...]) -> Decision:
    """Decide a table that was created with these user partitions, with ``now`` in the configuration."""
    properties = applied(found, number, partition_by=by)
    keys = (HiveColumn(name="segment", type="string"), *(HiveColumn(name=n, type="int") for n, _ in by))
    table = replace(hive(**write_properties(properties)), partition_keys=keys)
    return seen(found, options={"partition_by": now}, table=table)


def test_a_new_table_has_the_user_partitions_that_fit_its_row() -> None:
    decision = seen(TWO, options={"partition_by": BY})
    assert decision.desired is not None
    assert [(p.name, p.source) for p in decision.desired.partitions] == [("bucket", "id"), ("first", "name")]
    unfit = seen(TWO, options={"partition_by": (*BY, ("age", "age"), ("gone", "gone"))})
    assert outcome(unfit) == (Verdict.HOLD, ["SS416", "SS416"])


def test_user_partitions_stay_what_they_were() -> None:
    assert outcome(partitioned(TWO, 2, *BY, now=BY)) == (Verdict.NONE, [])
    for now in ((), BY[:1], BY[::-1], (BY[0], ("first", "left(name, 2)"))):
        decision = partitioned(TWO, 2, *BY, now=now)
        assert outcome(decision) == (Verdict.HOLD, ["SS417"])
        assert decision.effective is not None
        assert [p.name for p in decision.effective.partitions] == ["bucket", "first"]
    assert partitioned(TWO, 2, now=BY).diagnostics[0].message == (
        "lake.student was made without partitions, and partition_by: now says bucket: pmod(id, 4), first: left(name, 1)"
    )
    born = ("first", "left(name, 1)"), ("day", "to_date(name, 'yyyy-MM-dd')")
    (undone,) = partitioned(TWO, 2, *born, now=()).diagnostics
    assert undone.message == (
        "lake.student was made with the partitions first: left(name, 1), day: to_date(name, 'yyyy-MM-dd'), "
        "and partition_by: now says nothing"
    )
    # In a location of its own nothing has landed.
    assert "copy the files there" in undone.fix


def test_a_column_of_a_user_partition_may_be_widened_and_renamed_and_not_become_another() -> None:
    widened = history((ID, col("n", INT)), (ID, col("n", BIGINT)))
    by = (("bucket", "pmod(n, 4)"), ("n_", "n"))
    assert outcome(partitioned(widened, 1, *by, now=by))[0] is Verdict.EVOLVE
    renamed = history((ID, NAME), (ID, col("full_name", STRING, aliases=("name",))))
    moved = (("first", "left(full_name, 1)"),)
    assert outcome(partitioned(renamed, 1, BY[1], now=moved)) == (Verdict.EVOLVE, ["SS107", "SS110"])
    assert outcome(partitioned(renamed, 1, BY[1], now=BY[1:])) == (Verdict.HOLD, ["SS107", "SS110", "SS416"])
    other = history((ID, NAME, col("nick", STRING)))
    nick = (("first", "left(nick, 1)"),)
    assert outcome(partitioned(other, 1, BY[1], now=nick)) == (Verdict.HOLD, ["SS417"])


@pytest.mark.parametrize(("number", "drop"), [(1, "drop"), (2, "keep")])
def test_a_column_of_a_user_partition_that_came_back_is_another_one(number: int, drop: str) -> None:
    found = history((ID, NAME), (ID,), (ID, col("Name", STRING)))
    properties = applied(found, number, partition_by=BY[1:], kept=True if drop == "keep" else None)
    keys = (HiveColumn(name="segment", type="string"), HiveColumn(name="first", type="string"))
    table = replace(hive(**write_properties(properties)), partition_keys=keys)
    decision = seen(found, table=table, options={"partition_by": BY[1:], "policies": {"drop": drop}})
    assert decision.verdict is Verdict.HOLD
    assert [d.message for d in decision.diagnostics if d.code == "SS417"] == [
        "lake.student, partition first: column Name was dropped and came back as a new one in version 3: rows that are "
        "written already lie where the one before says"
    ]


def test_a_column_of_a_user_partition_that_has_a_variant_is_another_one() -> None:
    found = history((ID, col("n", BIGINT)), (ID, col("n", INT)), splits=retypes)
    by = (("bucket", "pmod(n, 4)"),)
    keys = (HiveColumn(name="segment", type="string"), HiveColumn(name="bucket", type="int"))
    table = replace(hive(**write_properties(applied(found, 1, partition_by=by))), partition_keys=keys)
    decision = seen(found, table=table, options={"partition_by": by} | VARIANT)
    assert [d.message for d in decision.diagnostics if d.code == "SS417"] == [
        "lake.student, partition bucket: column n got another type in version 2, and policies.retype says variant: "
        "rows that are written already lie where the one before says"
    ]


BY_YEAR = ("create_year", "year(created)")


def test_where_a_column_takes_the_name_of_a_user_partition_the_way_out_is_at_the_source() -> None:
    """Correcting partition_by: would be SS417, which says to undo that."""
    row = (ID, col("created", DATE))
    taken = (*row, col("create_year", INT))
    decision = partitioned(history(row, taken), 1, BY_YEAR, now=(BY_YEAR,))
    assert outcome(decision) == (Verdict.HOLD, ["SS101", "SS416"])
    fix = decision.diagnostics[-1].fix
    assert "partition_by" not in fix
    assert fix.startswith("Call the column otherwise at the source, without the alias create_year")
    # It is as the advice says.
    for aliases, codes in (((), ["SS101"]), (("create_year",), ["SS101", "SS416"])):
        found = history(row, taken, (*row, col("year", INT, aliases=aliases)))
        assert [d.code for d in partitioned(found, 1, BY_YEAR, now=(BY_YEAR,)).diagnostics] == codes


@pytest.mark.parametrize("after", [(ID,), (ID, col("created", STRING))], ids=["dropped", "retyped"])
def test_where_a_user_partition_no_longer_fits_its_column_no_other_one_is_advised(after: tuple[Column, ...]) -> None:
    decision = partitioned(history((ID, col("created", DATE)), after), 1, BY_YEAR, now=(BY_YEAR,))
    (fix,) = (d.fix for d in decision.diagnostics if d.code == "SS416")
    assert "a column that was renamed is called there by its new name" in fix
    assert "copy the files there" in fix
    new = seen(history((ID,)), options={"partition_by": (BY_YEAR,)})
    assert [d.fix for d in new.diagnostics] == ["Correct partition_by:."]


def test_a_table_that_lost_its_user_partitions_is_held() -> None:
    properties = applied(TWO, 2, partition_by=BY)
    decision = seen(TWO, table=hive(**write_properties(properties)), options={"partition_by": BY})
    assert outcome(decision) == (Verdict.HOLD, ["SS417"])


def test_a_newer_version_is_a_change() -> None:
    decision = seen(TWO, applied(TWO, 1))
    assert outcome(decision) == (Verdict.EVOLVE, ["SS101"])
    assert decision.effective is decision.desired


def test_a_newer_version_without_a_difference_still_moves_the_watermark() -> None:
    same = history((ID,), (ID,))
    decision = seen(same, applied(same, 1))
    assert (outcome(decision), decision.changes) == ((Verdict.EVOLVE, []), ())


def test_a_held_table_goes_on_as_it_is() -> None:
    lossy = history((ID, col("a", rec(x=INT))), (ID, col("a", INT)))
    decision = seen(lossy, applied(lossy, 1))
    assert outcome(decision) == (Verdict.HOLD, ["SS120"])
    assert decision.effective is decision.current
    assert decision.current is not None
    assert decision.current.version == lossy.versions[0]


def test_a_retyped_column_is_migrated() -> None:
    found = history((ID, col("a", BIGINT)), (ID, col("a", STRING)))
    decision = seen(found, applied(found, 1))
    assert outcome(decision) == (Verdict.MIGRATE, ["SS113"])
    assert decision.effective is decision.desired


def test_a_key_that_was_text_is_not_migrated_because_two_texts_can_be_one_number() -> None:
    found = history((col("id", STRING),), (col("id", BIGINT),))
    assert outcome(seen(found, applied(found, 1))) == (Verdict.HOLD, ["SS113", "SS120"])
    found = history((col("id", BIGINT),), (col("id", STRING),))
    assert outcome(seen(found, applied(found, 1))) == (Verdict.MIGRATE, ["SS113"])


TIME, MICRO_TIME = (
    Leaf(type=Primitive.STRING, meaning=meaning, name=f"io.debezium.time.{name}")
    for meaning, name in ((Meaning.TIME_MILLIS, "Time"), (Meaning.TIME_MICROS, "MicroTime"))
)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (TIME, MICRO_TIME, ["SS115", "SS121"]),
        (MICROS, MILLIS, ["SS115", "SS121"]),
        (BIGINT, TIME, ["SS113", "SS121"]),
    ],
    ids=["times", "timestamps", "a number that becomes a time"],
)
def test_a_key_that_is_written_otherwise_is_not_migrated_because_one_value_would_be_two_rows(
    before: Leaf, after: Leaf, told: list[str]
) -> None:
    options = {"policies": {"semantic": "migrate"}}
    found = history((col("id", before), NAME), (col("id", after), NAME))
    assert outcome(seen(found, applied(found, 1), options=options)) == (Verdict.HOLD, told)
    beside = history((ID, col("at", before)), (ID, col("at", after)))
    assert outcome(seen(beside, applied(beside, 1), options=options)) == (Verdict.MIGRATE, told[:1])
    # So the policy is not advised.
    assert not [d for d in seen(found, applied(found, 1)).diagnostics if "policies.semantic" in d.fix]


@pytest.mark.parametrize("before", [DATE, MILLIS, TIME, STRING], ids=["date", "timestamp", "time", "text"])
def test_a_key_whose_values_only_got_another_name_is_shown_as_before(before: Leaf) -> None:
    """As where a connector goes from Debezium's types to Connect's: both are decoded alike."""
    named = (
        col("id", replace(before, name=f"{kind}.X")) for kind in ("io.debezium.data", "org.apache.kafka.connect.data")
    )
    found = history(*((column, NAME) for column in named))
    (held,) = seen(found, applied(found, 1)).diagnostics
    assert (held.code, "policies.semantic to migrate" in held.fix) == ("SS121", True)
    options = {"policies": {"semantic": "migrate"}}
    assert outcome(seen(found, applied(found, 1), options=options)) == (Verdict.MIGRATE, ["SS115"])


@pytest.mark.parametrize("after", [STRING, MILLIS], ids=["text", "timestamp"])
def test_a_key_that_was_a_date_is_retyped_like_any_other(after: Leaf) -> None:
    found = history((col("id", DATE),), (col("id", after),))
    assert outcome(seen(found, applied(found, 1))) == (Verdict.MIGRATE, ["SS113"])


VARIANT = {"policies": {"retype": "variant"}}


def variants(*rows: tuple[Column, ...]) -> History:
    return history(*rows, splits=retypes)


def test_a_variant_stays_beside_the_column_that_took_its_place() -> None:
    found = variants((ID, col("a", BIGINT), NAME), (ID, col("a", STRING, nullable=False, default='"x"'), NAME))
    decision = seen(found, applied(found, 1), options=VARIANT)
    assert outcome(decision) == (Verdict.EVOLVE, ["SS114"])
    assert decision.diagnostics[0].message == "column a became string; its values from before stay visible as a__v1"
    assert decision.desired is not None
    assert [(c.name, c.life.since) for c in decision.desired.columns] == [
        ("id", 1),
        ("a", 2),
        ("a__v1", 1),
        ("name", 1),
    ]


def test_a_variant_of_a_variant_stays_too_under_a_name_that_is_free() -> None:
    rows = ((ID, col("a", BIGINT)), (ID, col("a", STRING)), (ID, col("a", rec(x=INT)), col("a__v1", INT)))
    found = variants(*rows)
    decision = seen(found, applied(found, 1), options=VARIANT)
    assert decision.desired is not None
    assert [c.name for c in decision.desired.columns] == ["id", "a", "a__v2", "a__v1__2", "a__v1"]


def test_a_variant_of_a_column_that_is_renamed_at_once_keeps_its_own_name() -> None:
    renamed = replace(col("b", STRING), aliases=("a",))
    found = variants((ID, col("a", BIGINT), NAME), (ID, renamed, NAME))
    decision = seen(found, applied(found, 1), options=VARIANT)
    assert outcome(decision) == (Verdict.EVOLVE, ["SS114"])
    assert decision.diagnostics[0].message == "column b became string; its values from before stay visible as a__v1"
    assert decision.desired is not None
    assert [c.name for c in decision.desired.columns] == ["id", "b", "a__v1", "name"]


def test_a_variant_goes_when_its_column_goes() -> None:
    found = variants((ID, col("a", BIGINT)), (ID, col("a", STRING)), (ID,))
    decision = seen(found, applied(found, 2), options=VARIANT)
    assert outcome(decision) == (Verdict.EVOLVE, ["SS104", "SS104"])


@pytest.mark.parametrize("policies", [{}, {"key": "rebuild"}, {"drop": "keep"}])
@pytest.mark.parametrize(
    ("after", "key", "types"),
    [
        ((col("id", STRING, nullable=False),), "id", "bigint to string"),
        ((col("nid", STRING, aliases=("id",)),), "nid", "bigint to string"),
        ((col("id", STRING), col("id", DATE)), "id", "bigint to date"),
    ],
    ids=["retyped", "renamed at once", "twice"],
)
def test_a_key_has_no_variant_and_its_table_is_held_with_that_alone(
    policies: dict[str, str], after: tuple[Column, ...], key: str, types: str
) -> None:
    found = variants((ID, NAME), *((column, NAME) for column in after))
    options = {"policies": policies | {"retype": "variant"}}
    decision = seen(found, applied(found, 1), key=(key,), options=options)
    assert outcome(decision) == (Verdict.HOLD, ["SS122"])
    assert decision.diagnostics[0].message == (
        f"key column {key} got another type ({types}), and policies.retype says variant: "
        "rows from before would have no value in it"
    )
    assert decision.effective is decision.current


def test_what_was_a_key_has_a_variant_once_another_column_is_it() -> None:
    found = variants((ID, NAME), (col("id", STRING), NAME))
    options = {"policies": {"retype": "variant", "key": "rebuild"}}
    decision = seen(found, applied(found, 1), key=("name",), options=options)
    assert outcome(decision) == (Verdict.MIGRATE, ["SS116", "SS114"])


REBUILT = {"policies": {"key": "rebuild"}}


@pytest.mark.parametrize(
    ("was", "found", "key", "held"),
    [
        (2, 1, ("name",), True),
        (2, 1, ("id",), False),
        (2, 2, ("name",), False),
        (2, 3, ("name",), False),
        (0, 1, ("name",), False),
        (2, 0, ("name",), False),
    ],
    ids=["older", "older, the same key", "the same version", "newer", "by an older release", "keys: says it"],
)
def test_no_table_gets_its_key_back_from_an_older_version(was: int, found: int, key: tuple[str], held: bool) -> None:
    decision = seen(TWO, applied(TWO, 2, key_version=was), key=key, key_version=found, options=REBUILT)
    said = [d.message for d in decision.diagnostics if d.code == "SS404"]
    assert said == ["shop.student-key was at version 2, and the registry's newest is 1"] * held
    assert (decision.verdict is Verdict.HOLD) == held
    after = next_properties(decision)
    assert after is not None
    assert after.key_version == (was if held or key == ("id",) else found)


@pytest.mark.parametrize(("applied_as", "after"), [(1, 3), (2, 1)])
def test_with_another_version_a_table_knows_the_newest_version_that_has_its_key(applied_as: int, after: int) -> None:
    decision = seen(TWO, applied(TWO, applied_as, key_version=1), key_version=3)
    values = next_properties(decision)
    assert values is not None
    assert (values.version, values.key_version) == (2, after)
    again = next_properties(seen(TWO, values, key_version=2))
    assert again is not None
    assert again.key_version == after


def test_a_new_table_knows_which_version_its_key_is_from() -> None:
    created = next_properties(seen(TWO, key_version=3))
    assert created is not None
    assert created.key_version == 3


BOTH = {"policies": {"retype": "variant", "drop": "keep"}}


@pytest.mark.parametrize("name", ["a", "c"])
def test_a_variant_stays_where_its_column_is_kept(name: str) -> None:
    heir = col(name, STRING, aliases=("a",))
    found = variants((ID, col("a", BIGINT)), (ID, heir), (ID,), (ID, col(name, DATE)))
    known = (history(*(v.columns for v in found.versions[:n]), splits=retypes) for n in (2, 3, 4))
    shapes = [seen(one, applied(one, 1), options=BOTH).desired for one in known]
    assert [[c.name for c in shape.columns] for shape in shapes if shape] == [
        ["id", name, "a__v1"],
        ["id", name, "a__v1"],
        # The new column has the name to itself.
        ["id", name, "a__v1"],
    ]
    assert [shape.columns[1].since for shape in shapes if shape] == [2, 2, 4]


def test_what_was_replaced_before_the_table_was_made_is_not_shown() -> None:
    found = variants((ID, col("a", BIGINT)), (ID, col("a", STRING)), (ID, col("a", STRING), NAME))
    decision = seen(found, applied(found, 2, baseline=2), options=VARIANT)
    assert decision.desired is not None
    assert [c.name for c in decision.desired.columns] == ["id", "a", "name"]


def test_a_key_column_has_no_variant() -> None:
    found = variants((col("id", BIGINT),), (col("id", STRING),))
    assert outcome(seen(found, applied(found, 1), options=VARIANT))[0] is Verdict.HOLD


def test_the_configuration_decides_whose_lives_go_on() -> None:
    rows = (version(1, ID, col("a", BIGINT)), version(2, ID, col("a", STRING)))
    split, whole = (history_of(target(policies={"retype": p}), rows).newest.columns[1] for p in ("variant", "migrate"))
    assert (split.since, whole.since) == (2, 1)


def test_a_table_whose_view_is_not_ours_keeps_its_state() -> None:
    properties = applied(TWO, 2)
    teachers = replace(FOREIGN_VIEW, properties={SUBJECT: "shop.teacher-value"})
    for view in (FOREIGN_VIEW, teachers, hive("student_view", schemasync_subject="s", kind="EXTERNAL_TABLE")):
        decision = seen(TWO, properties, view=view)
        assert (outcome(decision), decision.properties) == ((Verdict.HOLD, ["SS201"]), properties)
    mangled = hive(**write_properties(properties) | {"schemasync.version": "two"})
    assert seen(TWO, table=mangled, view=FOREIGN_VIEW).properties is None
    assert seen(TWO, view=FOREIGN_VIEW).properties is None


FOREIGN_VIEW = hive("student_view", kind="VIRTUAL_VIEW")
FORMATS = (
    ("table_type", "ICEBERG"),
    ("storage_handler", "org.apache.hadoop.hive.hbase.HBaseStorageHandler"),
    *(
        ("spark.sql.sources.provider", provider)
        for provider in ("delta", "Hudi", "org.apache.hudi", "org.apache.spark.sql.delta.sources.DeltaDataSource")
    ),
)
"""What tables have among their properties that are no plain files."""


@pytest.mark.parametrize(
    ("found", "adopt", "message"),
    [
        ({"table": hive()}, False, "lake.student exists and is not schemasync's"),
        (
            {"table": hive(kind="MANAGED_TABLE")}, True,
            "lake.student is a managed_table: taking it over would delete its data",
        ),
        (
            {"table": hive(**{"external.table.purge": "TRUE"})}, True,
            "lake.student has external.table.purge: taking it over would delete its data",
        ),
        *(
            (
                {"table": hive(**{name: value})}, True,
                f"lake.student is a table of {value}, and no plain files: only what made it can drop it",
            )
            for name, value in FORMATS
        ),
        *(
            (
                {"table": hive(kind="VIRTUAL_VIEW", **properties)}, adopt,
                "lake.student is a view, which no table can replace",
            )
            for adopt in (False, True)
            for properties in ({}, {SUBJECT: "shop.student-value"})
        ),
        ({"view": FOREIGN_VIEW}, False, "lake.student_view, which the view would replace, is not schemasync's"),
        (
            {"view": hive("student_view")}, True,
            "lake.student_view is a external_table, which no view can replace",
        ),
        *(
            (
                {"view": hive("student_view", kind="VIRTUAL_VIEW", **{SUBJECT: "shop.teacher-value"})}, adopt,
                "lake.student_view, which the view would replace, belongs to the subject shop.teacher-value",
            )
            for adopt in (False, True)
        ),
    ],
)  # fmt: skip
def test_what_is_not_ours_is_not_touched(found: dict[str, Any], adopt: bool, message: str) -> None:
    decision = seen(TWO, options={"adopt": adopt}, **found)
    assert (decision.verdict, [(d.code, d.message) for d in decision.diagnostics]) == (
        Verdict.HOLD, [("SS201", message)],
    )  # fmt: skip
    assert decision.effective is None


def test_an_external_table_is_taken_over_when_told_so() -> None:
    decision = seen(TWO, options={"adopt": True}, table=hive(), view=FOREIGN_VIEW)
    assert (outcome(decision), decision.create, decision.drop_first) == ((Verdict.EVOLVE, []), True, True)


def test_our_own_view_is_no_obstacle() -> None:
    ours = hive("student_view", kind="VIRTUAL_VIEW", **{SUBJECT: "shop.student-value"})
    assert outcome(seen(TWO, applied(TWO, 2), view=ours)) == (Verdict.NONE, [])
    # One that a table left which is made anew.
    assert outcome(seen(TWO, view=ours)) == (Verdict.EVOLVE, [])


TROUBLE = (diagnose("SS405", "the registry has no versions"),)


def test_without_a_usable_history_nothing_is_created() -> None:
    for found in (None, TWO):
        assert outcome(seen(found, trouble=TROUBLE)) == (Verdict.HOLD, ["SS405"])


def test_a_table_whose_subject_vanished_is_held_as_it_is() -> None:
    gone, kept = (seen(found, applied(TWO, 2), trouble=TROUBLE) for found in (None, TWO))
    assert (outcome(gone), gone.properties, gone.effective) == ((Verdict.HOLD, ["SS405"]), applied(TWO, 2), None)
    assert outcome(kept) == (Verdict.HOLD, ["SS405"])
    assert kept.effective is not None


@pytest.mark.parametrize(
    ("found", "offered"),
    [
        ({"table": hive()}, True),
        ({"table": hive(kind="MANAGED_TABLE")}, False),
        ({"table": hive(**{"external.table.purge": "TRUE"})}, False),
        *(({"table": hive(**{name: value})}, False) for name, value in FORMATS),
        *(
            ({"table": hive(**{"spark.sql.sources.provider": provider})}, True)
            for provider in ("ORC", "jdbc", "org.apache.spark.sql.parquet", "org.apache.hudibras")
        ),
        ({"view": FOREIGN_VIEW}, True),
        ({"view": hive("student_view")}, False),
    ],
)
def test_adopting_is_offered_where_it_is_not_refused(found: dict[str, Any], offered: bool) -> None:
    (finding,) = seen(TWO, **found).diagnostics
    assert (finding.code, "adopt: true" in finding.fix) == ("SS201", offered)
    assert (seen(TWO, options={"adopt": True}, **found).verdict is Verdict.EVOLVE) == offered


@pytest.mark.parametrize("gone", [{}, {"schemasync.version": "two"}])
def test_a_version_that_another_property_has_too_comes_with_the_statement(gone: dict[str, str]) -> None:
    properties = {k: v for k, v in write_properties(applied(TWO, 2)).items() if k != "schemasync.version"} | gone
    (finding,) = seen(TWO, table=hive(**properties)).diagnostics
    assert finding.code == "SS214"
    assert finding.fix.endswith("ALTER TABLE `lake`.`student` SET TBLPROPERTIES ('schemasync.version' = '2')")


def test_mangled_properties_hold_the_table_and_are_named() -> None:
    broken = hive(**(write_properties(applied(TWO, 2)) | {"schemasync.keys": "id"}))
    (finding,) = seen(TWO, table=broken).diagnostics
    fix = "Restore the property. A table of release 0.1.0 has to be made anew: CHANGELOG.md says how."
    assert (finding.code, finding.fix) == ("SS214", fix)
    assert finding.message == "lake.student: the property schemasync.keys is mangled: 'id'"


def test_a_table_that_lost_its_subject_is_not_taken_for_another_ones() -> None:
    properties = {k: v for k, v in write_properties(applied(TWO, 1)).items() if k != SUBJECT}
    decision = seen(TWO, options={"adopt": True}, table=hive(**properties))
    assert (outcome(decision), decision.drop_first) == ((Verdict.HOLD, ["SS214"]), False)
    statement = "ALTER TABLE `lake`.`student` SET TBLPROPERTIES ('schemasync.subject' = 'shop.student-value')"
    assert decision.diagnostics[0].fix.endswith(statement)


@pytest.mark.parametrize("view", [None, hive("student_view", kind="VIRTUAL_VIEW", **{SUBJECT: "shop.teacher-value"})])
def test_a_table_of_another_subject_is_not_taken(view: HiveTable | None) -> None:
    decision = seen(TWO, applied(TWO, 2, subject="shop.teacher-value"), view=view)
    (finding,) = decision.diagnostics
    assert (finding.code, finding.message) == ("SS201", "lake.student belongs to the subject shop.teacher-value")
    # Its state is of other data: nothing may be put right by it.
    assert decision.properties is None


def test_a_table_whose_data_is_elsewhere_is_held_without_its_state() -> None:
    elsewhere = diagnose("SS219", "lake.student has its data elsewhere")
    decision = seen(TWO, applied(TWO, 2), misplaced=elsewhere)
    assert (decision.verdict, decision.diagnostics, decision.properties) == (Verdict.HOLD, (elsewhere,), None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, "version 3, which the table has, is gone"),
        ({"fingerprint": "other"}, "version 2 has another content than the one that was applied"),
        ({"baseline": 0}, "version 0, with which the table was created, is gone"),
    ],
)
def test_another_history_than_the_tables_holds_it(change: dict[str, Any], message: str) -> None:
    decision = seen(TWO, applied(TWO, 2, **change), trouble=TROUBLE)
    assert outcome(decision) == (Verdict.HOLD, ["SS404", "SS405"])
    assert decision.diagnostics[0].message == f"shop.student-value: {message}"


def test_the_configurations_key_beats_the_key_subject_and_case_does_not_count() -> None:
    decision = seen(TWO, key=("id",), options={"keys": ("NAME", "Id")})
    assert decision.desired is not None
    assert decision.desired.keys == ("name", "id")


@pytest.mark.parametrize("properties", [None, applied(TWO, 2)])
def test_what_should_be_known_of_a_key_is_told_and_holds_nothing(properties: TableProperties | None) -> None:
    remark = diagnose("SS419", "student-key has a field that rows lack")
    decision = seen(TWO, properties, remarks=(remark,))
    assert (decision.verdict is Verdict.HOLD, decision.diagnostics) == (False, (remark,))


def test_without_a_key_the_table_is_insert_only_and_says_so() -> None:
    decision = seen(TWO, key=None)
    assert outcome(decision) == (Verdict.EVOLVE, ["SS401"])
    assert decision.desired is not None
    assert decision.desired.keys == ()


def test_a_key_that_names_no_column_makes_no_table_until_somebody_says_which_it_is() -> None:
    """One that is made without a key never gets one."""
    (finding,) = seen(TWO, key=()).diagnostics
    assert (finding.code, finding.message) == (
        "SS402",
        "shop.student-key names no column of the rows: which of them are the key is not known",
    )
    assert ("keys:" in finding.fix, "insert_only: true" in finding.fix) == (True, True)
    for options in ({"keys": ("id",)}, {"insert_only": True}):
        assert outcome(seen(TWO, key=(), options=options)) == (Verdict.EVOLVE, [])
    assert outcome(seen(TWO, applied(TWO, 2, key=(), keys=()), key=())) == (Verdict.NONE, ["SS401"])


def test_unwrapped_events_that_do_not_tell_of_deletes_are_told() -> None:
    def found(deleted: str | None) -> History:
        return history((ID,), envelope=replace(FLAT, kind=EnvelopeKind.UNWRAPPED, deleted=deleted))

    assert outcome(seen(found(None))) == (Verdict.EVOLVE, ["SS422"])
    assert outcome(seen(found("__deleted"))) == (Verdict.EVOLVE, [])
    assert outcome(seen(found(None), options={"insert_only": True})) == (Verdict.EVOLVE, [])


@pytest.mark.parametrize(
    ("source_key", "lacking"), [(("ID",), "name"), (("nr",), "id, name"), (("Name", "id", "nr"), ""), ((), "")]
)
def test_columns_of_the_key_that_deletes_may_lack_are_told(source_key: tuple[str, ...], lacking: str) -> None:
    found = history((ID, col("name", STRING)), envelope=DEBEZIUM)
    shape, _ = shape_of(target(keys=("id", "name")), found, found.newest, key=None, baseline=1)
    told = [d.message for d in of_wider_key(target(), shape, source_key)]
    assert told == ([f"lake.student: deletes may lack {lacking}, which shop.student-key has not"] if lacking else [])


def test_events_that_are_not_unwrapped_lack_the_key_and_are_told_what_to_do() -> None:
    found = history((col("before", STRING), col("After", STRING)))
    assert "ExtractNewDocumentState" in seen(found).diagnostics[0].fix
    assert "ExtractNewDocumentState" not in seen(TWO, key=("uid",)).diagnostics[0].fix


def test_an_insert_only_table_that_is_meant_says_nothing() -> None:
    decision = seen(TWO, options={"insert_only": True})
    assert outcome(decision) == (Verdict.EVOLVE, [])
    assert decision.desired is not None
    assert decision.desired.keys == ()


def test_a_key_that_is_not_in_the_value_holds_the_table_new_or_not() -> None:
    message = "key column uid is not in the value (which has id, name, age)"
    new, old = seen(TWO, key=("id", "uid")), seen(TWO, applied(TWO, 2), key=("id", "uid"))
    assert [(d.code, d.message) for d in new.diagnostics] == [("SS402", message)]
    assert (new.verdict, old.verdict, old.diagnostics[-1].message) == (Verdict.HOLD, Verdict.HOLD, message)


def test_a_key_column_must_be_a_simple_value() -> None:
    found = history((col("id", rec(x=BIGINT)),))
    assert outcome(seen(found)) == (Verdict.HOLD, ["SS407"])


POSITIONS = ("lsn", "file,pos,row", "commit_lsn,change_lsn,event_serial_no", "commit_lsn,change_lsn", "ord")


@pytest.mark.parametrize("kind", EnvelopeKind)
def test_events_without_any_order_hold_a_keyed_table_only(kind: EnvelopeKind) -> None:
    found = history((ID,), envelope=Envelope(kind=kind, deleted="__deleted"))
    assert outcome(seen(found)) == (Verdict.HOLD, ["SS403"])
    assert outcome(seen(found, options={"insert_only": True})) == (Verdict.EVOLVE, [])
    assert seen(found, key=None).verdict is Verdict.EVOLVE
    fix = seen(found).diagnostics[0].fix
    unwrapped = kind in (EnvelopeKind.UNWRAPPED, EnvelopeKind.PLAIN)
    assert [("add.fields: op," in fix, f" {fields} " in fix) for fields in POSITIONS] == [(unwrapped, unwrapped)] * 5
    # Debezium's unwrapping by its defaults leaves the row alone.
    assert ("deletes" in fix) == (kind is EnvelopeKind.PLAIN)


AGE = col("age", BIGINT)


def by(*path: str) -> tuple[OrderingField, ...]:
    return (OrderingField(path=path, type=Primitive.BIGINT),)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_new_table_of_wrapped_events_is_not_ordered_by_a_row_that_some_of_them_lack(side: str) -> None:
    """A delete would be older than what it deletes, and the row would stay. A table that is there keeps its order."""
    found = history((ID, AGE), envelope=replace(DEBEZIUM, ordering=(*by(side, "age"), *DEBEZIUM.ordering)))
    message = f"events of shop.student-value are ordered by {side}.age: deletes have no row after them"
    new, old = seen(found), seen(found, applied(found, 1))
    assert (outcome(new), outcome(old)) == ((Verdict.HOLD, ["SS403"]), (Verdict.NONE, ["SS423"]))
    for decision in (new, old):
        (told,) = decision.diagnostics
        assert (told.message.startswith(message), "sequence_by:" in told.fix) == (True, True)
    assert outcome(seen(found, options={"insert_only": True})) == (Verdict.EVOLVE, [])


@pytest.mark.parametrize("side", ["before", "after"])
def test_the_row_of_wrapped_events_may_tell_apart_what_has_one_position(side: str) -> None:
    found = history((ID, AGE), envelope=replace(DEBEZIUM, ordering=(*DEBEZIUM.ordering, *by(side, "age"))))
    assert outcome(seen(found)) == (Verdict.EVOLVE, [])
    assert outcome(seen(found, applied(found, 1))) == (Verdict.NONE, [])


DELETED = Envelope(kind=EnvelopeKind.UNWRAPPED, op="__op", deleted="__deleted", offset="kafka_offset")


@pytest.mark.parametrize(
    ("envelope", "path", "told"),
    [
        (FLAT, "age", True),
        (DELETED, "age", True),
        (DELETED, "AGE", True),
        (DELETED, "ts_ms", True),
        (replace(DELETED, op=None), "ts_ms", False),
        (DELETED, "kafka_offset", False),
        (DELETED, "id", False),
        (DELETED, "__lsn", False),
        (FLAT, "kafka_offset", False),
        (DEBEZIUM, "ts_ms", False),
        (PLAIN, "age", False),
    ],
)
def test_an_order_by_what_deletes_may_hold_an_older_value_of_is_said(
    envelope: Envelope, path: str, *, told: bool
) -> None:
    offset = (col("kafka_offset", BIGINT),) if envelope.kind is EnvelopeKind.UNWRAPPED else ()
    columns = (ID, AGE, col("op", STRING), col("ts_ms", BIGINT), *offset)
    found = history(columns, envelope=replace(envelope, ordering=by(path)))
    assert outcome(seen(found)) == (Verdict.EVOLVE, ["SS423"] if told else [])
    assert outcome(seen(found, options={"insert_only": True})) == (Verdict.EVOLVE, [])


@pytest.mark.parametrize(("op", "of_row"), [("__op", " of the row: "), (None, ", which may be a column of the row: ")])
def test_a_clock_that_may_be_a_column_of_the_row_is_called_no_more_than_that(op: str | None, of_row: str) -> None:
    found = history((ID, col("ts_ms", BIGINT)), envelope=replace(DELETED, op=op, ordering=by("ts_ms")))
    (told,) = seen(found).diagnostics
    assert (told.code, told.message) == (
        "SS423",
        f"events of shop.student-value are ordered by ts_ms{of_row}what deletes have there may be older, or nothing",
    )


def test_events_that_only_their_offset_orders_are_fine() -> None:
    for kind in (EnvelopeKind.UNWRAPPED, EnvelopeKind.PLAIN):
        found = history((ID,), envelope=Envelope(kind=kind, deleted="__deleted", offset="kafka_offset"))
        assert outcome(seen(found)) == (Verdict.EVOLVE, [])


def test_plain_events_with_an_order_are_fine() -> None:
    ordered = Envelope(kind=EnvelopeKind.PLAIN, ordering=FLAT.ordering)
    assert outcome(seen(history((ID,), envelope=ordered))) == (Verdict.EVOLVE, [])


def test_a_change_of_the_key_holds_the_table() -> None:
    decision = seen(TWO, applied(TWO, 2), key=("id", "name"))
    assert (outcome(decision), decision.changes) == (
        (Verdict.HOLD, ["SS122"]), (ChangeKey(current=("id",), desired=("id", "name")),),
    )  # fmt: skip


@pytest.mark.parametrize("key", ["hold", "rebuild"])
def test_a_table_that_was_made_without_a_key_gets_none_and_its_advice_can_be_followed(key: str) -> None:
    properties = applied(TWO, 2, keys=(), key=())
    options = {"keys": ("id",), "policies": {"key": key}}
    (finding,) = seen(TWO, properties, key=None, options=options).diagnostics
    assert (finding.code, "--rebuild" in finding.fix, "insert_only: true" in finding.fix) == ("SS122", False, True)
    assert outcome(seen(TWO, properties, options={"insert_only": True})) == (Verdict.NONE, [])


@pytest.mark.parametrize("key", ["hold", "rebuild"])
def test_a_table_that_lost_its_key_is_not_called_insert_only(key: str) -> None:
    (finding,) = seen(TWO, applied(TWO, 2), key=None, options={"policies": {"key": key}}).diagnostics
    assert (finding.code, "--rebuild" in finding.fix, "restore the key" in finding.fix) == ("SS122", False, True)


FINER = replace(FLAT, ordering=(OrderingField(path=("name",), type=Primitive.STRING), *FLAT.ordering))


def reordered(first: Envelope, second: Envelope) -> History:
    return read_history([version(1, ID, NAME, envelope=first), version(2, ID, NAME, envelope=second)])


def test_a_key_column_that_is_another_column_of_the_same_name_holds_the_table() -> None:
    found = history((ID, NAME), (NAME,), (ID, NAME))
    decision = seen(found, applied(found, 1))
    assert decision.verdict is Verdict.HOLD
    assert decision.diagnostics[-1].message == (
        "key column id was dropped and came back in version 3: rows from before have no value in it"
    )


def test_finer_times_that_appear_do_not_change_the_tables_order() -> None:
    found = reordered(FLAT, FINER)
    decision = seen(found, applied(found, 1))
    assert (outcome(decision), decision.changes) == ((Verdict.EVOLVE, []), ())
    assert decision.desired is not None
    assert decision.desired.envelope.ordering == FLAT.ordering


def test_an_order_that_appears_where_there_was_none_is_not_passed_over() -> None:
    """Tables without a key need none."""
    bare = Envelope(kind=EnvelopeKind.FLAT, op="op", ts_ms=("ts_ms",))
    found = reordered(bare, FLAT)
    assert outcome(seen(found, applied(found, 1, key=(), keys=()), key=()))[0] is Verdict.EVOLVE
    found = reordered(replace(bare, offset="kafka_offset"), replace(FLAT, offset="kafka_offset"))
    assert outcome(seen(found, applied(found, 1))) == (Verdict.EVOLVE, [])


def test_a_table_keeps_a_configured_order_that_the_configuration_no_longer_has() -> None:
    """Without it nothing orders these events; they still carry what the table was made with."""
    found = history((ID, NAME), envelope=Envelope(kind=EnvelopeKind.UNWRAPPED, deleted="__deleted"))
    decision = seen(found, applied(found, 1, ordering=FINER.ordering[:1]))
    assert outcome(decision) == (Verdict.NONE, ["SS423", "SS418"])
    assert decision.desired is not None
    assert decision.desired.envelope.ordering == FINER.ordering[:1]


def test_an_order_that_events_no_longer_carry_holds_the_table() -> None:
    found = reordered(DEBEZIUM, FLAT)
    assert outcome(seen(found, applied(found, 1))) == (Verdict.HOLD, ["SS123"])


def test_an_order_whose_numbers_mean_something_else_now_holds_the_table() -> None:
    def stamped(meaning: Meaning) -> Envelope:
        field = OrderingField(path=("ts_ms",), type=Primitive.BIGINT, meaning=meaning)
        return replace(FLAT, ordering=(field,))

    found = reordered(stamped(Meaning.EPOCH_MILLIS), stamped(Meaning.PLAIN))
    assert outcome(seen(found, applied(found, 1))) == (Verdict.HOLD, ["SS123"])


def test_an_order_whose_values_are_in_another_one_as_texts_holds_the_table() -> None:
    """'10' is before '9'."""
    numbered = replace(FLAT, ordering=(OrderingField(path=("name",), type=Primitive.BIGINT), *FLAT.ordering))
    found = reordered(numbered, FINER)
    assert outcome(seen(found, applied(found, 1))) == (Verdict.HOLD, ["SS123", "SS423", "SS418"])


def test_a_configured_order_is_followed_and_a_change_of_it_holds_the_table() -> None:
    found = reordered(FLAT, FINER)
    decision = seen(found, applied(found, 1), options={"sequence_by": ("name", "ts_ms")})
    assert (outcome(decision), decision.changes) == (
        (Verdict.HOLD, ["SS123", "SS423", "SS418"]), (ChangeEnvelope(current=FLAT, desired=FINER),),
    )  # fmt: skip


def test_a_version_whose_events_are_not_known_carries_no_order() -> None:
    blind = replace(version(2, ID, NAME, envelope=FINER), event=None)
    found = read_history([version(1, ID, NAME), blind])
    assert outcome(seen(found, applied(found, 1))) == (Verdict.HOLD, ["SS123", "SS423", "SS418"])


def shown(found: History, number: int, **policies: str) -> list[tuple[str, int, bool]]:
    """Return (name, since, nullable) of the columns that a table of that version shows."""
    return [(c.name, c.since, c.nullable) for c in shaped(found, number, **policies).columns]


def shaped(found: History, number: int, **policies: str) -> Shape:
    at = found.at(number)
    assert at is not None
    shape, _ = shape_of(target(policies=policies), found, at, key=("id",), baseline=1)
    return shape


DROPPED = history((ID, col("a", nullable=False)), (ID,), (ID, col("a")), (col("b"), ID))


def test_a_dropped_column_is_gone_or_stays_at_the_end() -> None:
    assert shown(DROPPED, 2) == [("id", 1, False)]
    assert shown(DROPPED, 2, drop="keep") == [("id", 1, False), ("a", 1, True)]


def test_a_kept_column_gives_way_to_a_new_one_of_its_name() -> None:
    assert shown(DROPPED, 3, drop="keep") == [("id", 1, False), ("a", 3, True)]


def test_of_two_dropped_columns_of_one_name_the_last_is_kept() -> None:
    assert shown(DROPPED, 4, drop="keep") == [("b", 4, True), ("id", 1, False), ("a", 3, True)]


def test_of_two_dropped_columns_of_one_name_that_is_kept_which_showed_last() -> None:
    """Which of them was added last says nothing: a rename brought the older one to that name."""
    a, b = col("a"), col("b", STRING)
    renamed = replace(b, name="a", aliases=("b",))
    of_two = history((ID, b, a), (ID, b), (ID, renamed), (ID,))
    assert shown(of_two, 4, drop="keep") == [("id", 1, False), ("a", 1, True)]
    (kept,) = shaped(of_two, 4, drop="keep").columns[1:]
    assert kept.type is Primitive.STRING
    older = history((ID, b), (ID, b, a), (ID, b), (ID, renamed), (ID,))
    assert shown(older, 5, drop="keep") == [("id", 1, False), ("a", 1, True)]


def test_a_kept_column_that_another_one_hid_stays_hidden_once_its_name_is_free() -> None:
    """What was rewritten meanwhile no longer has it."""
    found = history((ID, col("c")), (ID, col("d")), (ID, col("c", aliases=("d",))), (ID, col("b", aliases=("c",))))
    assert shown(found, 2, drop="keep") == [("id", 1, False), ("d", 2, True), ("c", 1, True)]
    assert shown(found, 3, drop="keep") == [("id", 1, False), ("c", 2, True)]
    assert shown(found, 4, drop="keep") == [("id", 1, False), ("b", 2, True)]


def test_variants_of_a_kept_column_stay_where_another_one_hides_it() -> None:
    rows = (ID, col("a", BIGINT)), (ID, col("a", STRING)), (ID,), (ID, col("a", DATE)), (ID,)
    found = history(*rows, splits=retypes)
    keep = {"drop": "keep", "retype": "variant"}
    assert shown(found, 3, **keep) == [("id", 1, False), ("a", 2, True), ("a__v1", 1, True)]
    assert shown(found, 4, **keep) == [("id", 1, False), ("a", 4, True), ("a__v1", 1, True)]
    assert shown(found, 5, **keep) == [("id", 1, False), ("a__v1", 1, True), ("a", 4, True)]


def test_a_drop_that_is_kept_is_no_change_of_columns() -> None:
    found = history((ID, NAME), (ID,))
    decision = seen(found, applied(found, 1), options={"policies": {"drop": "keep"}})
    assert not [c for c in decision.changes if isinstance(c, DropColumn)]


@pytest.mark.parametrize(
    ("drop", "told"),
    [("hold", (Verdict.HOLD, ["SS124"])), ("drop", (Verdict.EVOLVE, ["SS104"])), ("keep", (Verdict.NONE, []))],
)
def test_columns_that_were_kept_are_dropped_where_the_policy_changes(
    drop: str, told: tuple[Verdict, list[str]]
) -> None:
    found = history((ID, NAME), (ID,))
    decision = seen(found, applied(found, 2, kept=True), options={"policies": {"drop": drop}})
    assert outcome(decision) == told
    assert decision.current is not None
    assert [c.name for c in decision.current.columns] == ["id", "name"]


@pytest.mark.parametrize("after", [BIGINT, DATE], ids=["followed", "held"])
def test_what_was_dropped_is_not_there_until_the_policy_that_keeps_it_is_carried_out(after: Leaf) -> None:
    """A vacuum may have taken its column away."""
    found = history((ID, NAME, col("n", INT)), (ID, col("n", INT)), (ID, col("n", after)))
    decision = seen(found, applied(found, 2), options={"policies": {"drop": "keep"}})
    assert decision.current is not None
    assert [c.name for c in decision.current.columns] == ["id", "n"]
    assert [c.column.name for c in decision.changes if isinstance(c, AddColumn)] == ["name"]


@pytest.mark.parametrize("add", ["evolve", "null", "hold"])
def test_a_column_that_is_kept_though_it_was_dropped_is_told_as_such(add: str) -> None:
    found = history((ID, NAME, col("b", nullable=False, default="7")), (ID,))
    decision = seen(found, applied(found, 2), options={"policies": {"drop": "keep", "add": add}})
    assert decision.verdict is Verdict.EVOLVE
    assert [f"{d.code} {d.message}" for d in decision.diagnostics] == [
        f"SS101 column {name} was dropped and is shown again: NULL where rows were rewritten without it"
        for name in ("name", "b")
    ]


def test_a_column_that_comes_back_is_told_as_such() -> None:
    at_once = history((ID, col("a")), (ID,), (ID, col("a")))
    decision = seen(at_once, applied(at_once, 1))
    assert outcome(decision) == (Verdict.EVOLVE, ["SS104", "SS105"])


def added_texts(*rows: tuple[Column, ...], number: int = 1) -> list[str]:
    found = history(*rows)
    told_of = seen(found, applied(found, number)).diagnostics
    return [f"{d.code} {d.message}" for d in told_of if d.code in {"SS101", "SS102", "SS103", "SS105"}]


def test_what_older_rows_read_is_told_of_a_column_that_came_back_too() -> None:
    came_back = "SS105 column a was dropped earlier and came back in version 3"
    assert added_texts((ID, col("a")), (ID,), (ID, col("a")), number=2) == [came_back]
    assert added_texts((ID, col("a")), (ID,), (ID, col("a", nullable=False, default="7")), number=2) == [
        came_back,
        "SS102 column a was added NOT NULL: older rows read its default 7",
    ]


@pytest.mark.parametrize("number", [1, 2])
def test_a_column_that_was_dropped_may_come_back_under_the_name_that_the_table_has(number: int) -> None:
    named = ("a", "b")[number - 1]
    rows = ((ID, col("a")), (ID, col("b", aliases=("a",))), (ID,), (ID, col(named)))
    came_back = f"SS105 column {named} was dropped earlier and came back in version 4"
    assert added_texts(*rows, number=number) == [came_back]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_name_that_a_renamed_column_left_did_not_come_back(number: int) -> None:
    b = col("b", aliases=("a",))
    assert added_texts((ID, col("a")), (ID, b), (ID, b), (ID, b, col("a")), number=number) == [
        "SS101 column a was added"
    ]


def hints(decision: Decision) -> list[tuple[str, str]]:
    return [(d.message, d.fix) for d in decision.diagnostics if d.code == "SS108"]


def aliased(*sides: tuple[str, ...]) -> list[Column]:
    return [col(name, aliases=aliases) for name, *aliases in sides]


@pytest.mark.parametrize("drop", ["drop", "keep"])
@pytest.mark.parametrize(
    ("before", "after", "renames"),
    [
        (
            aliased(("price",), ("new_price",)),
            aliased(("price", "new_price"), ("old_price", "price")),
            {"price": "new_price", "old_price": "price"},
        ),
        (aliased(("a",), ("b",)), aliased(("a", "b"), ("b", "A")), {"a": "b", "b": "a"}),
    ],
    ids=["passed on", "swapped"],
)
def test_aliases_that_name_what_is_still_there_are_told_with_what_they_may_mean(
    before: list[Column], after: list[Column], renames: dict[str, str], drop: str
) -> None:
    versions = version(1, ID, *before), version(2, ID, *after)
    found = history_of(target(), versions)
    policies = {"policies": {"drop": drop}}
    decision = seen(found, applied(found, 1), options=policies)
    (hint,) = hints(decision)
    was = " and ".join(f"{new} was {old}" for new, old in renames.items())
    said = ", ".join(f"{new}: {old}" for new, old in renames.items())
    assert hint == (
        f"aliases say that {was}: names that are still there keep their values all the same",
        f"If the values are to move, say so before applying: renames: {{{said}}}.",
    )
    # It is as the advice says.
    said_so = history_of(target(renames=tuple(renames.items())), versions)
    moved = seen(said_so, applied(found, 1), options={"renames": tuple(renames.items()), **policies})
    assert moved.verdict is Verdict.EVOLVE
    assert {c.desired: c.current for c in moved.changes if isinstance(c, RenameColumn)} == renames
    assert hints(moved) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (aliased(("a",)), aliased(("a",), ("b", "a"))),
        (aliased(("a",)), aliased(("b", "a"))),
        (aliased(("a", "b"), ("b", "a")), aliased(("a", "b"), ("b", "a"), ("c",))),
        (aliased(("a",), ("b",)), aliased(("a", "A", "x"), ("b", "a"))),
    ],
    ids=["a copy", "a rename", "said before", "one of both stays"],
)
def test_other_aliases_are_no_more_than_changed(before: list[Column], after: list[Column]) -> None:
    found = history((ID, *before), (ID, *after))
    assert hints(seen(found, applied(found, 1))) == []


def test_what_aliases_say_over_several_versions_is_told_where_it_can_be_said_by_renames() -> None:
    """Here they were said of a version that the table has already."""
    rows = (
        aliased(("a",), ("b",)),
        aliased(("a", "b"), ("b", "a")),
        aliased(("a",), ("b",)),
        aliased(("a", "b"), ("b", "a")),
    )
    found = history(*((ID, *columns) for columns in rows))
    assert hints(seen(found, applied(found, 3))) == []


def test_policies_and_defaults_reach_the_shape() -> None:
    decision = seen(TWO, options={"policies": {"add": "null"}})
    assert decision.desired is not None
    assert not decision.desired.fill_defaults
    assert decision.desired.schema.keys == ("id",)


def test_a_nested_field_that_came_back_with_another_type_is_a_new_one_also_at_once() -> None:
    rows = [(ID, col("s", rec(x=BIGINT, **members))) for members in ({"y": BIGINT}, {}, {"y": STRING})]
    found = history(*rows)
    assert outcome(seen(found, applied(found, 1))) == (Verdict.EVOLVE, ["SS112", "SS111"])


def test_a_nested_field_that_is_dropped_now_is_told_as_such() -> None:
    found = history((ID, col("s", rec(x=BIGINT, y=BIGINT))), (ID, col("s", rec(x=BIGINT))))
    assert outcome(seen(found, applied(found, 1))) == (Verdict.EVOLVE, ["SS112"])


@pytest.mark.parametrize(
    ("before", "after", "told_of"),
    [
        (col("c", ListOf(element=INT)), col("c", ListOf(element=STRING)), ["array<string>"]),
        (col("c", MapOf(key=STRING, value=INT)), col("c", MapOf(key=STRING, value=BIGINT)), ["map<string,bigint>"]),
        (
            col("c", ListOf(element=rec(x=INT))),
            col("c", ListOf(element=rec(x=INT, y=INT))),
            ["array<struct<x:int,y:int>>"],
        ),
        (NAME, col("c", ListOf(element=INT), nullable=False, default="[]"), ["array<int>"]),
        (NAME, col("c", ListOf(element=STRING), nullable=False, default="[]"), []),
        (col("c", rec(x=INT)), col("c", rec(x=STRING, y=INT)), []),
        (col("c", ListOf(element=INT)), col("c", ListOf(element=INT), nullable=False), []),
    ],
    ids=["array", "map", "field in an array", "empty default", "empty default of texts", "struct", "as before"],
)
def test_what_hive_s_sql_cannot_make_of_rows_from_before_is_told(
    before: Column, after: Column, told_of: list[str]
) -> None:
    found = history((ID, before), (ID, after))
    shape = seen(found, applied(found, 1)).desired
    assert shape is not None
    told_ = [
        [f"{d.code} {d.message}" for d in beyond_hive(target(only_spark=alone), shape, frozenset(versions))]
        for alone, versions in ((False, {1, 2}), (False, {2}), (True, {1}))
    ]
    assert told_ == [
        [f"SS117 column c: of rows from before Hive's SQL cannot make {made}" for made in told_of],
        [],
        [],
    ]


@pytest.mark.parametrize(
    ("shape", "between"),
    [
        (rec(x=INT, y=STRING), STRING),
        (ListOf(element=rec(x=INT)), STRING),
        (rec(x=INT), union(INT, rec(x=INT))),
        (union(STRING, INT), STRING),
    ],
    ids=["struct", "array", "union in between", "union"],
)
def test_going_back_at_the_source_ends_a_hold_and_loses_nothing(shape: Encoding, between: Encoding) -> None:
    found = history((ID, col("s", shape)), (ID, col("s", between)), (ID, col("s", shape, doc="again")))
    assert outcome(seen(history(*(v.columns for v in found.versions[:2])), applied(found, 1)))[0] is Verdict.HOLD
    decision = seen(found, applied(found, 1))
    assert (outcome(decision), [type(c) for c in decision.changes]) == ((Verdict.EVOLVE, ["SS110"]), [ChangeDoc])
    assert decision.desired is not None
    column, layout = decision.desired.columns[1], decision.desired.layout
    before = carried(found, column=column, layout=layout, version=1)
    assert before == Carried(name="s", shape=Keep(target=column.type))


def test_a_kept_column_has_nothing_in_between() -> None:
    found = history((ID, NAME), (ID,), (ID,), (ID, col("b")))
    decision = seen(found, applied(found, 2), options={"policies": {"drop": "keep"}})
    assert outcome(decision) == (Verdict.EVOLVE, ["SS101", "SS101"])


@given(histories())
def test_a_table_can_follow_from_any_version_to_the_newest_and_then_has_nothing_to_do(found: History) -> None:
    options = {"insert_only": True}
    for number in range(1, found.newest.version + 1):
        decision = seen(found, applied(found, number, keys=()), options=options)
        assert decision.verdict in {Verdict.EVOLVE, Verdict.NONE}
    assert (decision.verdict, decision.changes) == (Verdict.NONE, ())


def test_a_step_as_programs_read_it() -> None:
    assert Step(kind="add_columns", why="w", sql="s").to_json() == {"kind": "add_columns", "sql": "s", "why": "w"}


def test_a_key_column_that_only_changes_its_case_is_the_same_key() -> None:
    found = history((col("Id", BIGINT), NAME), (col("id", BIGINT), NAME))
    decision = seen(found, applied(found, 1, keys=("Id",)), key=("id",))
    assert outcome(decision) == (Verdict.EVOLVE, ["SS107"])


def told(*columns: Any, **options: Any) -> list[str]:
    decision = seen(history((ID, *columns)), options=options)
    assert decision.verdict is Verdict.EVOLVE
    return [f"{d.code} {d.message}" for d in decision.diagnostics]


def test_metadata_that_the_row_has_too_is_shown_under_another_name() -> None:
    columns = (col("__Op"), col("__op__2"))
    assert told(*columns, metadata=True) == ["SS412 lake.student_view shows our __op as __op__3"]
    assert told(*columns) == []


def test_an_order_by_text_is_said_whoever_chose_it() -> None:
    by = [OrderingField(path=path, type=Primitive.STRING) for path in (("revision",), ("source", "file"))]
    found = read_history([version(1, ID, NAME, envelope=replace(FLAT, ordering=(*by, *FLAT.ordering)))])
    for options in ({}, {"sequence_by": ("revision", "source.file", "ts_ms")}):
        assert [f"{d.code} {d.message}" for d in seen(found, options=options).diagnostics] == [
            "SS418 lake.student: revision, which orders events, is compared as text, byte by byte: '10' is before '9'"
        ]


def test_a_text_that_does_not_order_this_table_is_not_said() -> None:
    """It has the order that it began with."""
    by_text = reordered(replace(FLAT, ordering=FINER.ordering[:1]), FLAT)
    assert outcome(seen(by_text, applied(by_text, 1))) == (Verdict.EVOLVE, ["SS423", "SS418"])
    by_number = reordered(FLAT, FINER)
    assert outcome(seen(by_number, applied(by_number, 1))) == (Verdict.EVOLVE, [])


def test_events_that_list_the_columns_of_their_rows_are_said() -> None:
    names = ("changeType", "timestamp", "columnNames", "columnValues")
    listed = history(tuple(col(name, STRING) for name in names), envelope=Envelope(kind=EnvelopeKind.PLAIN))
    assert outcome(seen(listed)) == (Verdict.HOLD, ["SS402", "SS420"])
    decision = seen(listed, options={"insert_only": True})
    assert outcome(decision) == (Verdict.EVOLVE, ["SS420"])
    assert decision.diagnostics[0].message.endswith("are in columnNames and columnValues")
    assert told(*(col(name, STRING) for name in names[2:])) == []


def test_names_and_types_that_some_metastores_do_not_store_are_said() -> None:
    long, wide = "a" * 129, rec(**{f"a_rather_long_name_{n}": BIGINT for n in range(160)})
    assert told(col(long), col("s", wide), col("u", rec(größe=BIGINT))) == [
        f"SS413 lake.student: the name {long[:40]}... has 129 characters",
        "SS415 lake.student: a field inside column u has letters beyond ASCII in its name",
        "SS414 lake.student: the type of s is a text of 4697 characters",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, False),
        ({"location": "s3a://lake/student"}, False),
        ({"location": "hdfs://lake/student"}, True),
        ({"compaction": Compaction(kernel="spark")}, True),
        ({"policies": {"key": "rebuild"}}, True),
        ({"insert_only": True}, True),
    ],
)
def test_a_long_type_of_an_event_is_said_where_a_compaction_makes_a_table_with_it(
    options: dict[str, Any], said: bool
) -> None:
    columns = (col(f"a_rather_long_name_{n}", BIGINT) for n in range(160))
    found = seen(history((ID, *columns), envelope=DEBEZIUM), options=options).diagnostics
    assert [d.message for d in found] == [
        f"lake.student_incremental_yyyyMMddHH: the type of {side} is a text of 4707 characters"
        for side in (("before", "after") if said else ())
    ]
