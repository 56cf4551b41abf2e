from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.config import Compaction, Config, Policies, read_by_any
from schemasync.core.mapping import TableMapping, TableTarget, map_subjects
from schemasync.core.schema import EnvelopeKind


def config(*tables: dict[str, Any], **defaults: Any) -> Config:
    return Config.model_validate({"registry": {"url": "file:r"}, "tables": tables, "defaults": defaults})


def mapped(subjects: list[str], *tables: dict[str, Any], living: Collection[str] = (), **defaults: Any) -> TableMapping:
    return map_subjects(subjects, config(*tables, **defaults), living=frozenset(living))


def tables(mapping: TableMapping) -> dict[str, str]:
    return {t.subject: t.table for t in mapping.targets}


def told(mapping: TableMapping) -> list[str]:
    return [str(problem) for problem in mapping.problems]


def test_a_target_has_every_default_filled_in() -> None:
    assert mapped(["shop.public.student-key", "shop.public.student-value"]) == TableMapping(
        targets=(
            TableTarget(
                subject="shop.public.student-value",
                key_subject="shop.public.student-key",
                topic="shop.public.student",
                database="lake",
                table="shop_public_student",
                view="shop_public_student_view",
                base="shop_public_student_base",
                incremental="shop_public_student_incremental_{hour}",
                compactor="shop_public_student_compactor",
                history="shop_public_student_history",
                location="./lake/shop.public.student",
                increments="incremental/increment_{yyyyMMddHH}",
                keys=(),
                sequence_by=(),
                insert_only=False,
                renames=(),
                toast="carry",
                toast_placeholder="__debezium_unavailable_value",
                compatibility_group=None,
                adopt=False,
                envelope=None,
                metadata=False,
                only_spark=True,
                policies=Policies(),
                compaction=Compaction(),
            ),
        ),
        missing=(),
        skipped=(),
        problems=(),
    )


def test_an_entry_overrides_the_defaults_key_by_key() -> None:
    entry = {
        "subject": "s-value",
        "table": "student",
        "database": "uni",
        "location": "s3a://lake//{database}/{table}//",
        "increments": "in/{yyyyMMddHH}/",
        "keys": ["id"],
        "sequence_by": ["ts_ms"],
        "insert_only": True,
        "renames": {"z": "y", "b": "a"},
        "toast": "null",
        "toast_placeholder": "unsent",
        "compatibility_group": "2",
        "adopt": True,
        "envelope": "flat",
        "policies": {"drop": "keep"},
        "compaction": {"every": "10m"},
        "names": {"view": "students", "history": "{table}_past"},
        "view": {"metadata": True, "readers": "any"},
    }
    defaults = {
        "policies": {"add": "hold", "drop": "hold"},
        "compaction": {"every": "2h", "on_fold": "archive"},
        "names": {"base": "{table}_b"},
    }
    assert mapped(["s-value"], entry, **defaults).targets == (
        TableTarget(
            subject="s-value",
            key_subject=None,
            topic="s",
            database="uni",
            table="student",
            view="students",
            base="student_b",
            incremental="student_incremental_{hour}",
            compactor="student_compactor",
            history="student_past",
            location="s3a://lake/uni/student",
            increments="in/{yyyyMMddHH}",
            keys=("id",),
            sequence_by=("ts_ms",),
            insert_only=True,
            renames=(("b", "a"), ("z", "y")),
            toast="null",
            toast_placeholder="unsent",
            compatibility_group="2",
            adopt=True,
            envelope=EnvelopeKind.FLAT,
            metadata=True,
            policies=Policies(add="hold", drop="keep"),
            compaction=Compaction(every=600_000, on_fold="archive"),
        ),
    )


def test_spark_alone_reads_views_in_an_embedded_metastore_unless_someone_says_otherwise() -> None:
    def only_spark(kind: str, readers: str = "auto", conf: str = "spark.x") -> bool:
        metastore = {"kind": kind} | ({"uri": "thrift://localhost:9083"} if kind == "thrift" else {})
        raw = {"registry": {"url": "http://registry"}, "metastore": metastore, "spark": {"conf": {conf: "y"}}}
        config = Config.model_validate(raw | {"defaults": {"view": {"readers": readers}}})
        (found,) = map_subjects(["student-value"], config).targets
        return found.only_spark

    kinds = ("embedded", "thrift")
    assert [only_spark(kind) for kind in kinds] == [True, False]
    assert [only_spark(kind, "any") for kind in kinds] == [False, False]
    assert [only_spark(kind, "spark") for kind in kinds] == [True, True]
    for conf in ("spark.hadoop.hive.metastore.uris", "spark.hadoop.javax.jdo.option.ConnectionURL"):
        assert not only_spark("embedded", conf=conf)


def test_no_view_is_for_spark_alone_where_others_may_open_the_metastore_unless_someone_says_so() -> None:
    def only_spark(default: str, own: dict[str, str]) -> bool:
        raw = {"registry": {"url": "http://registry"}, "defaults": {"view": {"readers": default}}}
        config = Config.model_validate(raw | {"tables": [{"subject": "student-value", "view": own}]})
        (found,) = map_subjects(["student-value"], read_by_any(config)).targets
        return found.only_spark

    owns: tuple[dict[str, str], ...] = ({}, {"readers": "auto"}, {"readers": "any"}, {"readers": "spark"})
    assert [only_spark("auto", own) for own in owns] == [False, False, False, True]
    assert [only_spark("any", own) for own in owns] == [False, False, False, True]
    assert [only_spark("spark", own) for own in owns] == [True, False, False, True]


def test_the_per_run_table_of_an_hour_has_its_name() -> None:
    target = mapped(["student-value"]).targets[0]
    assert target.incremental_table("2026112010") == "student_incremental_2026112010"


def test_without_entries_every_value_subject_is_taken() -> None:
    assert tables(mapped(["a-value", "a-key", "b-value", "com.acme.Record"])) == {"a-value": "a", "b-value": "b"}


def test_with_entries_only_what_they_match_is_taken() -> None:
    assert tables(mapped(["a-value", "b-value"], {"subject": "a-value"})) == {"a-value": "a"}


def test_named_groups_fill_the_table_name() -> None:
    entry = {"subject": r"shop\.public\.(?P<name>.+)-value", "table": "shop_{name}"}
    assert tables(mapped(["shop.public.Order-Lines-value", "other.public.x-value"], entry)) == {
        "shop.public.Order-Lines-value": "shop_order_lines"
    }


def test_a_group_that_took_no_part_is_empty() -> None:
    entry = {"subject": r"(?P<env>dev_)?a-value", "table": "{env}{topic}_t"}
    assert tables(mapped(["a-value"], entry)) == {"a-value": "a_t"}


def test_a_regular_expression_must_match_the_whole_subject() -> None:
    assert tables(mapped(["a1-value", "ba1-value"], {"subject": "a.+-value"})) == {"a1-value": "a1"}


def test_a_regular_expression_never_takes_key_subjects() -> None:
    assert tables(mapped(["a-key", "a-value"], {"subject": ".*"})) == {"a-value": "a"}


RECORDS = ["com.acme.Student", "orders-com.acme.Line", "orders-com.acme.Order", "orders-com.acme.Order-key"]


def test_a_regular_expression_that_means_no_value_subject_takes_others() -> None:
    entry = {"subject": r"orders-com\.acme\.(?P<name>[\w]+)", "table": "{name}"}
    found = mapped([*RECORDS, "orders-value"], entry)
    assert (tables(found), told(found)) == (
        {"orders-com.acme.Line": "line", "orders-com.acme.Order": "order"},
        [],
    )


def test_a_regular_expression_that_may_mean_a_value_subject_takes_these_alone() -> None:
    found = mapped([*RECORDS, "orders-value"], {"subject": ".*"})
    assert (tables(found), told(found)) == ({"orders-value": "orders"}, [])


def test_a_regular_expression_that_takes_nothing_of_what_it_matches_is_told() -> None:
    entries = {"subject": "a-value"}, {"subject": r"orders-com\..+", "exclude": [".+Line"]}, {"subject": "gone.*"}
    assert told(mapped(["a-value", *RECORDS], *entries)) == [
        r"tables[1]: the expression orders-com\..+ takes no subject: it matches orders-com.acme.Order, but would match "
        r"orders-com.acme.Order-value, too, and means such subjects alone. Let it end so that no -value subject "
        r"matches, in \w+ for .+; or name the subjects exactly."
    ]


def test_a_regular_expression_whose_subjects_others_take_is_not_told() -> None:
    entries = {"subject": "a.*-value"}, {"subject": "a.*"}, {"subject": ".*[.]transaction-value"}
    assert told(mapped(["a1-value", "shop.transaction-value"], *entries)) == []


def test_an_exact_entry_beats_a_regular_expression_before_it() -> None:
    assert tables(mapped(["a-value", "b-value"], {"subject": ".+-value"}, {"subject": "b-value", "table": "x"})) == {
        "a-value": "a",
        "b-value": "x",
    }


def test_of_two_regular_expressions_the_first_one_wins() -> None:
    entries = {"subject": "a.*", "table": "one"}, {"subject": ".*a-value", "table": "two"}
    assert tables(mapped(["a-value"], *entries)) == {"a-value": "one"}


def test_a_subject_that_looks_like_a_regular_expression_may_be_named_exactly() -> None:
    entry = {"subject": "a(?P<x>b)-value", "table": "t{x}", "location": "s3a://lake/t"}
    assert tables(mapped(["a(?P<x>b)-value", "ab-value"], entry)) == {"a(?P<x>b)-value": "t"}


def test_a_subject_without_the_suffix_may_be_named_exactly() -> None:
    assert tables(mapped(["com.acme.Student"], {"subject": "com.acme.Student"})) == {
        "com.acme.Student": "com_acme_student"
    }


@pytest.mark.parametrize("exclude", ["shop.audit_log", "shop.audit_log-value", "shop.audit_.*", r".*_log-value"])
def test_an_entry_excludes_by_topic_or_subject_by_name_or_expression(exclude: str) -> None:
    entry = {"subject": r"shop\..+", "exclude": [exclude]}
    assert tables(mapped(["shop.audit_log-value", "shop.a-value"], entry)) == {"shop.a-value": "shop_a"}


def test_what_one_entry_excludes_another_one_may_take() -> None:
    entries = {"subject": ".+", "exclude": ["b"]}, {"subject": "(b|c)-value", "table": "other"}
    assert tables(mapped(["a-value", "b-value"], *entries)) == {"a-value": "a", "b-value": "other"}


NO_TABLES = [
    "__debezium-heartbeat.shop-value",
    "dbhistory.shop-value",
    "schema-changes.shop-value",
    "schemahistory-value",
    "shop.public._student_del-value",
    "shop.public._student_ghc-value",
    "shop.public._student_gho-value",
    "shop.schema-changes-value",
    "shop.transaction-value",
]


def test_subjects_that_hold_no_rows_are_skipped_and_said() -> None:
    found = mapped([*NO_TABLES, "a-value"], {"subject": ".*"})
    assert (tables(found), found.skipped) == ({"a-value": "a"}, tuple(NO_TABLES))


@pytest.mark.parametrize("subject", NO_TABLES)
def test_what_is_skipped_may_be_named_exactly(subject: str) -> None:
    assert list(tables(mapped([subject], {"subject": subject}))) == [subject]


@pytest.mark.parametrize(
    "subject", ["shop.public.transaction-value", "shop.public.orders_del-value", "shop.public.schema_history-value"]
)
def test_tables_that_are_only_called_like_that_are_not_skipped(subject: str) -> None:
    assert list(tables(mapped([subject]))) == [subject]


def test_a_named_subject_that_the_registry_lacks_is_missing_not_forgotten() -> None:
    found = mapped(["a-value"], {"subject": "a-value"}, {"subject": "b-value", "table": "bee"})
    assert ([t.table for t in found.missing], tables(found), found.problems) == (["bee"], {"a-value": "a"}, ())


def test_two_subjects_cannot_feed_one_table_and_others_go_on() -> None:
    found = mapped(["a.b-value", "a_b-value", "c-value"])
    assert (tables(found), told(found)) == (
        {"c-value": "c"},
        [
            "tables: lake.a_b is claimed 2 times: as the table of a.b-value and as the table of a_b-value. "
            "Give one of them another table, names or location, or exclude a subject."
        ],
    )


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("a.b-value", True),
        ("a.b", True),
        ("a_b", True),
        ("lake.a_b", True),
        ("a", False),
        ("b-value", False),
        ("lake", False),
        ("is", False),
        ("", False),
    ],
)
def test_a_problem_is_of_the_whole_names_in_it(name: str, known: bool) -> None:
    found = mapped(["a.b-value", "a_b-value", "c-value"])
    assert found.problem_of(name) == (found.problems[0] if known else None)


@pytest.mark.parametrize("name", ["x", "sp ace-value", "shop.s"])
def test_a_problem_is_of_the_subject_that_it_is_said_of(name: str) -> None:
    entries = {"subject": "x"}, {"subject": "x"}, {"subject": r"shop\..+"}
    found = mapped(["sp ace-value", "shop.s"], {"subject": "sp ace-value"}, *entries)
    assert found.problem_of(name) is not None


def claims(mapping: TableMapping) -> list[str]:
    return [f"{p.what}: {p.why}" for p in mapping.problems]


def test_a_missing_subject_keeps_its_claim() -> None:
    found = mapped(["a-value"], {"subject": "a-value", "table": "x"}, {"subject": "b-value", "table": "x"})
    assert (found.targets, found.missing, claims(found)) == (
        (),
        (),
        ["lake.x is claimed 2 times: as the table of a-value and as the table of b-value"],
    )


def test_a_subject_whose_table_there_is_keeps_what_another_begins_to_claim() -> None:
    found = mapped(["a.b-value", "a_b-value", "c-value"], living={"a_b-value"})
    (problem,) = found.problems
    assert [t.subject for t in found.targets] == ["a_b-value", "c-value"]
    assert ([t.subject for t in found.clashing], problem.fix) == (
        ["a.b-value"],
        "a_b-value, whose table is there, keeps it. "
        "Give one of them another table, names or location, or exclude a subject.",
    )
    assert [bool(found.problem_of(name)) for name in ("a.b-value", "a_b-value", "lake.a_b")] == [True, False, True]


@pytest.mark.parametrize("living", [{"c-value"}, {"a.b-value", "a_b-value"}])
def test_neither_keeps_what_both_have_or_none(living: set[str]) -> None:
    found = mapped(["a.b-value", "a_b-value", "c-value"], living=living)
    assert [t.subject for t in found.targets] == ["c-value"]
    assert ([t.subject for t in found.clashing], "keeps it" in found.problems[0].fix) == (
        ["a.b-value", "a_b-value"],
        False,
    )


def test_a_subject_that_lost_one_name_keeps_no_other() -> None:
    entries = ({"subject": "b-value", "table": "a_view"}, {"subject": "c-value", "table": "a"})
    found = mapped(["a-value", "b-value", "c-value"], *entries, {"subject": "a-value"}, living={"a-value"})
    assert ([t.subject for t in found.targets], len(found.problems)) == (["a-value"], 2)
    found = mapped(["a-value", "b-value", "c-value"], *entries, {"subject": "a-value"}, living={"a-value", "b-value"})
    assert ([t.subject for t in found.targets], len(found.problems)) == ([], 2)


def test_two_views_cannot_have_one_name() -> None:
    found = mapped(["a-value", "b-value"], names={"view": "everything"})
    assert (found.targets, claims(found)) == (
        (),
        ["lake.everything is claimed 2 times: as the view of a-value and as the view of b-value"],
    )


def test_a_view_cannot_have_its_own_tables_name() -> None:
    found = mapped(["a-value"], names={"view": "{table}"}, living={"a-value"})
    assert (found.targets, claims(found)) == (
        (),
        ["lake.a is claimed 2 times: as the table of a-value and as the view of a-value"],
    )


def test_no_table_may_have_the_name_of_a_per_run_table() -> None:
    assert claims(mapped(["a-value", "a_base-value"])) == [
        "lake.a_base is claimed 2 times: as the base of a-value and as the table of a_base-value"
    ]


def test_no_table_may_have_the_name_that_a_per_run_table_gets_in_some_hour() -> None:
    assert claims(mapped(["a-value", "a_incremental_2026112010-value", "b_2026112010-value"])) == [
        "lake.a_incremental_2026112010 is claimed 2 times: "
        "as the table of a_incremental_2026112010-value and as the incremental of a-value"
    ]


def test_two_tables_cannot_share_a_location() -> None:
    assert claims(mapped(["a-value", "b-value"], location="s3a://lake/shop/")) == [
        "s3a://lake/shop is claimed 2 times: as the location of a-value and as the location of b-value"
    ]


def test_one_name_in_two_databases_is_two_names() -> None:
    entries = {"subject": "a-value", "table": "x"}, {"subject": "b-value", "table": "x", "database": "other"}
    assert tables(mapped(["a-value", "b-value"], *entries)) == {"a-value": "x", "b-value": "x"}


def test_a_table_is_called_with_its_database_where_another_one_has_its_name() -> None:
    entries = {"subject": "a-value", "table": "x"}, {"subject": "b-value", "table": "x", "database": "other"}
    mapping = mapped(["a-value", "c-value"], *entries, {"subject": ".*"})
    assert [t.name for t in (*mapping.targets, *mapping.missing)] == ["c", "lake.x", "other.x"]


def test_two_entries_for_one_subject_are_refused() -> None:
    found = mapped(["a-value", "b-value"], {"subject": "a-value"}, {"subject": ".+"}, {"subject": "a-value"})
    assert (tables(found), told(found)) == (
        {"b-value": "b"},
        ["tables[0], tables[2]: subject a-value is named by 2 entries. Keep one of them."],
    )


@pytest.mark.parametrize("subject", ["../x-value", "..-value", "a/b-value", ":.ctx:a-value"])
def test_a_subject_that_is_no_topic_names_no_directory(subject: str) -> None:
    found = mapped([subject, "a-value"])
    assert (tables(found), told(found)) == (
        {"a-value": "a"},
        [
            f"subject '{subject}': the subject is not the name of a topic, so it cannot name a directory: "
            "a topic has letters, digits, dots, _ and - only. Set a `location:` without {topic} for it, or exclude it."
        ],
    )


def test_a_name_that_the_metastore_cannot_store_is_refused() -> None:
    found = mapped([f"{'t' * 106}-value", f"{'t' * 105}-value", f"{'t' * 129}-value"])
    assert (list(tables(found).values()), [p.what for p in found.problems]) == (
        ["t" * 105],
        [
            f"the name {'t' * 106}_incremental_{{hour}} is longer than 128 characters",
            "a topic of 129 characters makes no table name",
        ],
    )


TOPICS = ("a", "a.b", "a_b", "a_base", "b", "shop.transaction")
SUBJECTS = [f"{topic}-{kind}" for topic in TOPICS for kind in ("key", "value")]


@given(shuffled=st.permutations(SUBJECTS))
def test_the_order_of_the_registrys_list_does_not_matter(shuffled: list[str]) -> None:
    found, expected = mapped(shuffled), mapped(SUBJECTS)
    assert (found.targets, found.skipped, told(found)) == (expected.targets, expected.skipped, told(expected))


@given(subjects=st.lists(st.sampled_from(SUBJECTS)))
def test_no_name_and_no_location_belongs_to_two_targets(subjects: list[str]) -> None:
    targets = mapped(subjects).targets
    names = [n for t in targets for n in (t.table, t.view, t.base, t.incremental, t.compactor, t.history, t.location)]
    assert len(set(names)) == len(names)
