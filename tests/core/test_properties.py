from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.encoding import Meaning
from schemasync.core.manifest import StateId
from schemasync.core.properties import (
    PARTITION_BY,
    STATE,
    SUBJECT,
    TableProperties,
    is_ours,
    made_by_us,
    read_properties,
    write_properties,
)
from schemasync.core.schema import OrderingField
from schemasync.core.types import Primitive
from tests.core.builders import DEBEZIUM
from tests.core.test_manifest import states
from tests.strategies import avro_names

numbers = st.integers(0, 10**9)
fields = st.builds(
    OrderingField,
    path=st.lists(avro_names, min_size=1, max_size=3).map(tuple),
    type=st.sampled_from(Primitive),
    meaning=st.sampled_from(Meaning),
)
properties = st.builds(
    TableProperties,
    subject=st.text(min_size=1),
    version=numbers,
    schema_id=numbers,
    fingerprint=st.text("0123456789abcdef", min_size=64, max_size=64),
    baseline=numbers,
    keys=st.lists(st.text(min_size=1), max_size=3).map(tuple),
    ordering=st.lists(fields, max_size=3).map(tuple),
    columns=st.text(),
    lives=st.text(),
    state=states,
    partition_by=st.lists(st.tuples(st.text(), st.text()), max_size=2).map(tuple),
    kept=st.sampled_from((None, True, False)),
    view=st.text(),
    history=st.text(),
    key_version=numbers,
)
ONE = TableProperties(
    subject="shop.student-value",
    version=3,
    schema_id=17,
    fingerprint="abc",
    baseline=2,
    keys=("id", "größe"),
    ordering=DEBEZIUM.ordering,
    columns="c0",
    lives="l0",
    state=StateId(generation=7, admission=2),
)


@given(properties)
def test_what_was_written_is_read_back(values: TableProperties) -> None:
    assert read_properties(write_properties(values)) == values


def test_the_properties_as_people_see_them() -> None:
    assert write_properties(ONE) == {
        "schemasync.subject": "shop.student-value",
        "schemasync.version": "3",
        "schemasync.schema_id": "17",
        "schemasync.fingerprint": "abc",
        "schemasync.baseline": "2",
        "schemasync.keys": '["id", "gr\\u00f6\\u00dfe"]',
        "schemasync.ordering": '[["source/lsn", "bigint", "plain"], ["ts_ms", "bigint", "plain"]]',
        "schemasync.columns": "c0",
        "schemasync.lives": "l0",
        "schemasync.generation": "7",
        "schemasync.state": "000007-0002@3",
    }


def test_user_partitions_are_a_property_where_there_are_some() -> None:
    by = replace(ONE, partition_by=(("year", "year(born)"),))
    more = write_properties(by).items() - write_properties(ONE).items()
    assert more == {("schemasync.partition_by", '[["year", "year(born)"]]')}


def test_that_dropped_columns_are_shown_is_a_property_also_once_it_is_over() -> None:
    said = [write_properties(replace(ONE, kept=kept)).items() - write_properties(ONE).items() for kept in (True, False)]
    assert said == [{("schemasync.kept", "true")}, {("schemasync.kept", "false")}]


@given(properties)
def test_properties_of_other_tools_are_passed_over(values: TableProperties) -> None:
    assert read_properties(write_properties(values) | {"owner": "me", "numRows": "-1"}) == values


@pytest.mark.parametrize("name", sorted(set(write_properties(ONE)) - {"schemasync.generation"}))
def test_a_missing_property_is_named(name: str) -> None:
    written = write_properties(ONE)
    del written[name]
    with pytest.raises(ValueError, match=f"the property {name} is missing"):
        read_properties(written)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("schemasync.version", "three"),
        ("schemasync.schema_id", ""),
        ("schemasync.baseline", "1.5"),
        ("schemasync.keys", "id"),
        ("schemasync.keys", '"id"'),
        ("schemasync.keys", "5"),
        ("schemasync.keys", "[1]"),
        ("schemasync.ordering", "null"),
        ("schemasync.ordering", '[["ts_ms"]]'),
        ("schemasync.ordering", "[[1, 2, 3]]"),
        ("schemasync.ordering", '[["ts_ms", "no type", "plain"]]'),
        (STATE, "seven@3"),
        (PARTITION_BY, "year"),
        (PARTITION_BY, '[["year"]]'),
    ],
)
def test_a_mangled_property_is_named_and_shown(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"the property {name} is mangled: '") as caught:
        read_properties(write_properties(ONE) | {name: text})
    assert text in str(caught.value)


def test_the_token_moves_with_the_state_and_with_the_version() -> None:
    later, newer = {STATE: "000007-0003@3"}, {STATE: "000007-0002@4", "schemasync.version": "4"}
    tokens = {read_properties(write_properties(ONE) | change).token for change in ({}, later, newer)}
    assert tokens == {"000007-0002@3", "000007-0003@3", "000007-0002@4"}


def test_a_table_is_ours_when_it_names_its_subject() -> None:
    assert (is_ours({SUBJECT: "s"}), is_ours({"comment": "schemasync.subject"})) == (True, False)


def test_a_table_that_no_longer_names_its_subject_is_known_by_its_state() -> None:
    assert [made_by_us(found) for found in ({SUBJECT: "s"}, {STATE: "1"}, {"comment": "s"})] == [True, True, False]
