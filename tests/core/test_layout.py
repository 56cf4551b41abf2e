from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.history import History
from schemasync.core.layout import Layout, lay_out, meta_columns, ordering_columns
from schemasync.core.names import RESERVED_COLUMNS
from schemasync.core.schema import Life
from schemasync.core.types import Primitive
from tests.core.builders import BIGINT, DEBEZIUM, INT, PLAIN, STRING, col, dec, histories, history, rec


def names(*rows: tuple[object, ...], baseline: int = 1) -> list[str]:
    """Return the physical columns, each as ``name since-version type``."""
    found = history(*rows)  # type: ignore[arg-type]
    columns = lay_out(found, baseline=baseline, version=len(rows)).columns
    return [f"{c.name} {c.since} {c.type.value if isinstance(c.type, Primitive) else c.type}" for c in columns]


def test_the_first_life_of_a_name_keeps_the_name_in_lower_case() -> None:
    assert names((col("Id"), col("Größe", STRING))) == ["id 1 int", "größe 1 string"]


def test_a_widened_column_goes_on_in_a_new_physical_one() -> None:
    assert names((col("a"), col("b")), (col("a", BIGINT), col("b"))) == ["a 1 int", "b 1 int", "a__2 2 bigint"]


def test_a_name_that_comes_back_gets_a_new_physical_column() -> None:
    assert names((col("a"), col("b")), (col("b"),), (col("a"), col("b"))) == ["a 1 int", "b 1 int", "a__2 3 int"]


def test_each_name_of_a_wide_table_is_compared_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def noted(name: str) -> str:
        compared.append(name)
        return name

    monkeypatch.setattr("schemasync.core.names.folded", noted)
    assert len(names(tuple(col(f"c{n}") for n in range(300)))) == 300
    assert len(compared) < 300 * 3


def test_a_rename_keeps_the_physical_column() -> None:
    assert names((col("a"),), (col("b", aliases=("a",)),)) == ["a 1 int"]


def test_a_rename_with_another_type_takes_the_new_name() -> None:
    assert names((col("a"),), (col("b", BIGINT, aliases=("a",)),)) == ["a 1 int", "b 2 bigint"]


def test_a_new_column_under_an_old_physical_name_steps_aside() -> None:
    rows = ((col("a"),), (col("b", aliases=("a",)),), (col("b", aliases=("a",)), col("a", STRING)))
    assert names(*rows) == ["a 1 int", "a__2 3 string"]


@pytest.mark.parametrize("name", sorted(RESERVED_COLUMNS))
def test_a_column_called_like_one_of_ours_steps_aside(name: str) -> None:
    assert names((col(name.upper()),)) == [f"{name}__2 1 int"]


def test_a_column_that_is_called_like_a_widened_one_steps_aside() -> None:
    rows = ((col("a"), col("a__2", STRING)), (col("a", BIGINT), col("a__2", STRING)))
    assert names(*rows) == ["a 1 int", "a__2 1 string", "a__3 2 bigint"]
    added_later = ((col("a"),), (col("a", BIGINT), col("a__2", STRING)))
    assert names(*added_later) == ["a 1 int", "a__2 2 bigint", "a__2__2 2 string"]


def test_what_was_before_the_baseline_has_no_physical_columns() -> None:
    assert names((col("a"), col("gone")), (col("a", BIGINT),), baseline=2) == ["a 2 bigint"]


def test_another_order_of_a_structs_members_is_another_type() -> None:
    found = history((col("s", rec(x=INT, y=INT)),), (col("s", rec(y=INT, x=INT)),))
    assert [c.name for c in lay_out(found, baseline=1, version=2).columns] == ["s", "s__2"]


def test_a_phase_is_the_last_that_began_by_then() -> None:
    found = history((col("b"),), (col("a"), col("b")), (col("a", BIGINT), col("b")))
    layout, a = lay_out(found, baseline=1, version=3), Life(name="a", since=2)
    phases = [layout.phase(a, version) for version in (1, 2, 3)]
    assert [p.name if p else None for p in phases] == [None, "a", "a__2"]
    assert layout.current(found.newest.columns[0]).name == "a__2"


def test_rows_of_versions_before_the_baseline_stand_where_the_baseline_put_them() -> None:
    found = history((col("a"),), (col("a", BIGINT),))
    layout = lay_out(found, baseline=2, version=2)
    assert layout.phase(Life(name="a", since=1), 1) == layout.columns[0]


@given(histories())
def test_physical_names_are_unique_lower_case_and_never_ours(found: History) -> None:
    columns = lay_out(found, baseline=1, version=found.newest.version).columns
    physical = [c.name for c in columns]
    assert len(set(physical)) == len(physical)
    assert all(name == name.lower() and name not in RESERVED_COLUMNS for name in physical)


@given(histories(), st.data())
def test_a_layout_only_ever_grows_at_its_end(found: History, data: st.DataObject) -> None:
    last = found.newest.version
    baseline = data.draw(st.integers(1, last))
    layouts = [lay_out(found, baseline=baseline, version=v).columns for v in range(baseline, last + 1)]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(layouts))


@given(histories(), st.data())
def test_later_versions_do_not_change_the_layout_of_earlier_ones(found: History, data: st.DataObject) -> None:
    version = data.draw(st.integers(1, found.newest.version))
    shorter = History(versions=found.between(1, version))
    laid: list[Layout] = [lay_out(h, baseline=1, version=version) for h in (found, shorter)]
    assert laid[0] == laid[1]


@given(histories())
def test_every_column_has_a_place_of_its_type(found: History) -> None:
    layout = lay_out(found, baseline=1, version=found.newest.version)
    assert all(layout.current(c).type == c.type for c in found.newest.columns)


def test_our_columns_follow_the_ordering() -> None:
    assert [c.name for c in meta_columns(DEBEZIUM)] == [
        "__op", "__ts_ms", "__seq1", "__seq2", "__offset", "__schema_version", "__admitted_ms",
        "__tombstone",
    ]  # fmt: skip
    assert [c.comment for c in meta_columns(DEBEZIUM)][2] == "ordering key 1: source.lsn"


def test_what_the_source_said_comes_before_offset_and_admission() -> None:
    assert ordering_columns(DEBEZIUM) == ("__seq1", "__seq2", "__offset", "__admitted_ms")
    assert ordering_columns(PLAIN) == ("__offset", "__admitted_ms")


def test_all_our_columns_are_reserved() -> None:
    assert {c.name for c in meta_columns(DEBEZIUM)} <= RESERVED_COLUMNS


def test_a_decimal_of_more_digits_is_another_type() -> None:
    found = history((col("a", dec(5, 2)),), (col("a", dec(7, 2)),))
    assert [c.name for c in lay_out(found, baseline=1, version=2).columns] == ["a", "a__2"]
