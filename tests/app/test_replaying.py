"""The recorded past under the configured policies, told from the registry alone."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemasync.app.inspecting import map_tables
from schemasync.app.kept_schemas import SCHEMAS, keep_schema
from schemasync.app.opening import open_lake
from schemasync.app.replaying import Replay, TableReplay, replay
from schemasync.cli.outcomes import Exit, replay_exit
from schemasync.core.diagnostics import Diagnostic, diagnose
from schemasync.core.mapping import TableTarget
from schemasync.errors import RegistryError, StorageError, UsageError
from tests.app.still import Still, avro, key

NAME = ("name", ["null", "string"])
AGE = ("age", ["null", "int"])
WIDE = ("age", ["null", "long"])
TEXT = ("age", ["null", "string"])


def replayed(still: Still, *names: str) -> Replay:
    return replay(still.registry, still.config, names, open_lake=open_lake)


def story(still: Still, *names: str) -> list[tuple[int | None, int, str, list[str]]]:
    (table,) = replayed(still, *names).tables
    return told(table)


def told(table: TableReplay) -> list[tuple[int | None, int, str, list[str]]]:
    return [
        (m.from_version, m.to_version, m.verdict.value, [d.code for d in m.diagnostics if d.code != "SS104"])
        for m in table.timeline
    ]


def test_every_version_is_judged_in_order(still: Still) -> None:
    still.register(avro(NAME), avro(NAME, AGE), avro(NAME, WIDE), avro(WIDE))
    assert story(still) == [
        (None, 1, "evolve", []),
        (1, 2, "evolve", ["SS101"]),
        (2, 3, "evolve", ["SS106"]),
        (3, 4, "evolve", []),
    ]


def test_the_version_after_a_held_one_is_compared_with_the_last_that_was_not(still: Still) -> None:
    still.settings = {"defaults": {"policies": {"drop": "hold"}}}
    still.register(avro(NAME, AGE), avro(AGE), avro(WIDE), avro(NAME, WIDE))
    assert story(still) == [
        (None, 1, "evolve", []),
        (1, 2, "hold", ["SS124"]),
        (1, 3, "hold", ["SS124", "SS106"]),
        # By then the name had gone and come back: another column.
        (1, 4, "hold", ["SS124", "SS105", "SS106"]),
    ]


def test_no_value_is_said_to_fit_where_none_was_looked_at(still: Still) -> None:
    still.register(avro(AGE), avro(TEXT))
    said = []
    for policy in ("migrate", "hold"):
        still.settings = {"defaults": {"policies": {"retype": policy}}}
        (table,) = replayed(still).tables
        said += [(table.timeline[1].verdict.value, d.message) for d in table.timeline[1].diagnostics]
    fits = "column age: int to string, provided that every value fits (a replay looks at none)"
    assert said == [("migrate", fits), ("hold", f"{fits}, and policies.retype says hold")]


def test_a_version_that_can_be_no_table_is_held_and_history_for_the_next(still: Still) -> None:
    still.register('{"no": "schema"}', avro(NAME), avro(NAME, ("Name", "int")), avro(NAME, AGE))
    still.register(avro(NAME), kind="PROTOBUF")
    assert story(still) == [
        (None, 1, "hold", ["SS406"]),
        (None, 2, "evolve", []),
        (2, 3, "hold", ["SS406"]),
        (2, 4, "evolve", ["SS101"]),
        (4, 5, "hold", ["SS406"]),
    ]


def test_user_partitions_are_those_that_the_table_was_made_with(still: Still) -> None:
    still.settings = {"tables": [{"subject": "student-value", "partition_by": {"bucket": "pmod(id, 4)"}}]}
    still.register(avro(NAME), avro(NAME, AGE))
    assert story(still) == [(None, 1, "evolve", []), (1, 2, "evolve", ["SS101"])]


def test_the_key_is_the_newest_whose_columns_the_version_has(still: Still) -> None:
    region = ("region", "long")
    still.register(avro(NAME), avro(NAME, region), keys=("id",))
    still.registry.register("student-key", key("id", "region"))
    (table,) = replayed(still).tables
    assert told(table) == [(None, 1, "evolve", []), (1, 2, "hold", ["SS103", "SS122"])]


def test_a_key_of_the_past_that_cannot_be_read_is_passed_over(still: Still) -> None:
    still.registry.register("student-key", "{")
    still.register(avro(NAME), keys=())
    still.registry.register("student-key", key("uuid"))
    assert story(still) == [(None, 1, "hold", ["SS402"])]


def test_a_newest_key_that_cannot_be_read_holds_every_version_as_it_does_in_plan(still: Still) -> None:
    still.register(avro(NAME))
    still.registry.register("student-key", "{")
    assert story(still) == [(None, 1, "hold", ["SS406"])]


def test_tables_can_be_named_and_a_subject_without_versions_has_no_timeline(still: Still) -> None:
    still.settings = {"tables": [{"subject": s} for s in ("student-value", "pupil-value", "gone-value")]}
    still.register(avro(NAME))
    still.register(avro(NAME), topic="pupil")
    assert [t.target.table for t in replayed(still).tables] == ["pupil", "student", "gone"]
    (gone,) = replayed(still, "gone").tables
    assert (gone.timeline, [d.code for d in gone.diagnostics]) == ((), ["SS405"])
    with pytest.raises(UsageError, match="there is no table nope"):
        replayed(still, "nope")


def test_what_is_kept_beside_the_data_counts_as_it_was_applied(still: Still) -> None:
    still.register(avro(NAME), avro(NAME, AGE))
    lake = open_lake(map_tables(still.workspace).targets[0])
    for version in (1, 2):
        keep_schema(lake, still.registry.schema("student-value", version), applied=True)
    still.registry.delete("student-value", 1)
    still.registry.register("student-value", avro(NAME), version=2)
    still.register(avro(NAME, WIDE))
    assert story(still) == [(None, 1, "evolve", []), (1, 2, "evolve", ["SS101"]), (2, 3, "evolve", ["SS106"])]


def mistyped(still: Still, subject: str = "studnet-value") -> Still:
    """Let the entry of a table that is there name another subject, at the same location."""
    still.register(avro(NAME), avro(NAME, AGE))
    lake = open_lake(map_tables(still.workspace).targets[0])
    for version in (1, 2):
        keep_schema(lake, still.registry.schema("student-value", version), applied=True)
    still.settle()
    location = f"file://{still.root}/lake/student"
    still.settings = {"tables": [{"subject": subject, "table": "student", "location": location}]}
    return still


def test_a_mistyped_subject_has_no_history_and_is_told_what_it_should_be(still: Still) -> None:
    (planned,), (table,) = mistyped(still).plan().tables, replayed(still).tables
    message = "the registry has no versions of studnet-value"
    assert [(d.code, d.message) for d in planned.diagnostics] == [
        ("SS201", "lake.student belongs to the subject student-value"),
        ("SS405", message),
    ]
    assert (planned.desired_version, table.timeline) == (None, ())
    assert table.diagnostics == planned.diagnostics[1:]
    assert table.diagnostics[0].fix.startswith("Perhaps student-value is meant. Check the subject's name")
    assert replay_exit(replayed(still)) is Exit.HELD


def test_no_subject_is_named_where_none_is_called_like_that(still: Still) -> None:
    ((found,),) = (table.diagnostics for table in replayed(mistyped(still, "pupil-value")).tables)
    assert found == diagnose("SS405", "the registry has no versions of pupil-value")


def test_the_history_of_a_registered_subject_is_its_own_in_the_place_of_another_table_too(still: Still) -> None:
    mistyped(still, "pupil-value").register(avro(AGE), topic="pupil")
    (planned,), (table,) = still.plan().tables, replayed(still).tables
    assert planned.desired_version == 1
    assert (told(table), table.diagnostics) == ([(None, 1, "evolve", [])], ())


def test_a_version_that_was_edited_after_it_was_applied_is_another_history_as_in_a_plan(still: Still) -> None:
    still.register(avro(NAME))
    keep_schema(
        open_lake(map_tables(still.workspace).targets[0]), still.registry.schema("student-value", 1), applied=True
    )
    still.settle()
    assert replayed(still).tables[0].diagnostics == ()
    still.registry.register("student-value", avro(AGE), version=1)
    (planned,), (table,) = still.plan().tables, replayed(still).tables
    edited = [d for d in planned.diagnostics if d.code == "SS404"]
    assert (list(table.diagnostics), told(table)) == (edited, [(None, 1, "evolve", [])])
    still.registry.register("student-value", avro(NAME), version=1)
    assert replayed(still).tables[0].diagnostics == ()


def test_what_is_kept_but_cannot_be_reached_is_said_and_not_missed(still: Still) -> None:
    def refused(target: TableTarget) -> Any:
        raise StorageError("the location cannot be opened", where=target.location)

    still.register(avro(NAME))
    (table,) = replay(still.registry, still.config, open_lake=refused).tables
    assert (len(table.timeline), table.unread) == (
        1,
        f"file://{still.root}/lake/student: the location cannot be opened",
    )
    (still.root / "lake/student" / SCHEMAS).mkdir(parents=True)
    (still.root / "lake/student" / SCHEMAS / "000001.json").write_text("{")
    (table,) = replayed(still).tables
    assert (len(table.timeline), "a kept schema cannot be read" in table.unread) == (1, True)


def test_a_subject_that_the_registry_refuses_is_told_as_a_plan_tells_it_and_others_go_on(
    still: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("pupil", "student"):
        still.register(avro(NAME), topic=topic)
    ask = still.registry.versions

    def refusing(subject: str) -> tuple[int, ...]:
        if subject == "pupil-value":
            raise RegistryError("403 Forbidden", where=subject)
        return ask(subject)

    monkeypatch.setattr(still.registry, "versions", refusing)
    planned, _ = still.plan().tables
    refused, other = replayed(still).tables
    assert (refused.target.table, refused.timeline, refused.diagnostics) == ("pupil", (), planned.diagnostics)
    assert (told(other), other.diagnostics) == ([(None, 1, "evolve", [])], ())


def test_the_json_has_the_promised_shape(still: Still) -> None:
    still.register(avro(NAME), avro(NAME, AGE))
    document = replayed(still).to_json()
    del document["tables"][0]["timeline"][0]
    assert document == {
        "tables": [
            {
                "table": "student",
                "database": "lake",
                "subject": "student-value",
                "timeline": [
                    {
                        "from_version": 1,
                        "to_version": 2,
                        "verdict": "evolve",
                        "changes": [{"kind": "add_column", "column": "age", "from": None, "to": "int"}],
                        "diagnostics": [
                            {"code": "SS101", "severity": "info", "message": "column age was added", "fix": ""}
                        ],
                    }
                ],
                "unread": None,
                "diagnostics": [],
            }
        ],
        "problems": [],
    }


def test_what_is_wrong_with_the_configuration_is_told_beside_the_others(still: Still) -> None:
    still.settings = {"tables": [{"subject": f"{s}-value", "table": "t"} for s in "ab"] + [{"subject": "c-value"}]}
    for topic in "abc":
        still.register(avro(NAME), topic=topic)
    found = replayed(still)
    assert ([t.target.table for t in found.tables], len(found.problems)) == (["c"], 1)


COLUMNS = (NAME, AGE, WIDE, TEXT, ("full", ["null", "string"]), ("n", "long"))
POLICIES = st.fixed_dictionaries(
    {}, optional={"add": st.sampled_from(["null", "hold"]), "drop": st.sampled_from(["keep", "hold"])}
)
ROWS = st.lists(st.sampled_from(COLUMNS), unique_by=lambda column: column[0], max_size=4)


@settings(max_examples=40)
@given(rows=st.lists(ROWS, min_size=1, max_size=5), policies=POLICIES)
def test_a_replay_is_what_plan_said_when_each_version_was_the_newest(
    rows: Sequence[Sequence[tuple[str, Any]]], policies: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        still = Still(Path(root), defaults={"policies": policies})
        said = []
        for row in rows:
            still.register(avro(*row))
            (planned,) = still.plan().tables
            said.append((planned.current_version, planned.verdict, planned.changes, codes(planned.diagnostics)))
            still.settle()
        (table,) = replayed(still).tables
    assert [(m.from_version, m.verdict, m.changes, codes(m.diagnostics)) for m in table.timeline] == said


def codes(diagnostics: Sequence[Diagnostic]) -> list[str]:
    # What a message says of values is another one in a replay.
    return [diagnostic.code for diagnostic in diagnostics]
