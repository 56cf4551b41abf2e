from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.config import Policies
from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, shown_type
from schemasync.core.history import History, read_history
from schemasync.core.layout import Layout, lay_out
from schemasync.core.projection import Carried, Fill, Projected, Projection, Take, Unprojectable, carried, project
from schemasync.core.reshape import Convert, Keep, NoConversion, Reshape, reshape, reshaped
from schemasync.core.schema import OrderingField
from schemasync.core.types import Primitive
from tests.core.builders import (
    BIGINT,
    DATE,
    DEBEZIUM,
    DOUBLE,
    FLOAT,
    INT,
    MICROS,
    MILLIS,
    STRING,
    ZONED,
    col,
    dec,
    histories,
    history,
    rec,
    version,
)
from tests.core.rows import carried_value, model, rows


def projected(
    found: History, writer: int, *, baseline: int = 1, version: int | None = None, **more: Any
) -> Projection | Unprojectable:
    """Project a file of one version into the table, the newest version's unless another is given."""
    number = version or found.newest.version
    table, wrote = found.at(number), found.at(writer)
    assert table is not None
    assert wrote is not None
    layout = lay_out(found, baseline=baseline, version=number)
    given_: dict[str, Any] = {"columns": table.columns, "keys": (), "ordering": (), "policies": Policies()}
    return project(found, writer=wrote, layout=layout, **(given_ | more))


def sources(found: Projection | Unprojectable) -> dict[str, Take | Fill]:
    assert isinstance(found, Projection)
    return {p.name: p.source for p in found.columns}


def take(name: str, encoding: Encoding, target: Encoding | None = None) -> Take:
    shape = reshape(encoding, target or encoding)
    assert not isinstance(shape, NoConversion)
    return Take(paths=((name,),), encoding=encoding, shape=shape)


def test_a_file_of_the_tables_version_is_taken_as_it_is() -> None:
    found = history((col("Id", BIGINT), col("name", STRING)))
    assert projected(found, 1, keys=("Id",)) == Projection(
        writer=1,
        columns=(
            Projected(name="id", type=Primitive.BIGINT, source=take("Id", BIGINT)),
            Projected(name="name", type=Primitive.STRING, source=take("name", STRING)),
        ),
        envelope=found.newest.envelope,
    )


def test_a_renamed_column_is_read_under_its_old_name() -> None:
    found = history((col("a"),), (col("b", aliases=("a",)),))
    assert sources(projected(found, 1)) == {"a": take("a", INT)}


def test_a_widened_column_is_cast() -> None:
    found = history((col("a"),), (col("a", BIGINT),))
    assert sources(projected(found, 1)) == {"a__2": take("a", INT, BIGINT)}


def test_rows_older_than_a_column_read_null_or_its_frozen_default() -> None:
    first, later = col("a", nullable=False, default="1"), col("a", nullable=True, default="2")
    found = history((col("id"),), (col("id"), first, col("b", default="3")), (col("id"), later, col("b")))
    assert sources(projected(found, 1)) == {"id": take("id", INT), "a": Fill(value=1), "b": Fill(value=None)}
    assert sources(projected(found, 1, fill_defaults=False))["a"] == Fill(value=None)


def test_a_value_of_an_earlier_life_never_shows() -> None:
    found = history((col("a"), col("b")), (col("a"),), (col("a"), col("b", nullable=False, default="7")))
    assert sources(projected(found, 1)) == {"a": take("a", INT), "b__2": Fill(value=7)}


def test_a_nested_member_that_was_gone_in_between_is_left_behind() -> None:
    whole, less = rec(x=INT, y=INT), rec(x=INT)
    found = history((col("s", whole),), (col("s", less),), (col("s", whole),))
    first, last = (v.columns[0].encoding for v in (found.versions[0], found.newest))
    assert sources(projected(found, 1)) == {"s__3": take("s", first, last)}
    assert sources(projected(found, 1))["s__3"] != take("s", whole, whole)
    assert [c.name for c in lay_out(found, baseline=1, version=3).columns] == ["s", "s__2", "s__3"]


def test_a_default_is_as_old_as_its_column() -> None:
    """Members that were dropped since are gone from it, those that came since are null in it."""
    born = col("s", rec(x=INT, y=INT), nullable=False, default='{"x": 1, "y": 2}')
    rows_ = [(col("id"), *(replace(born, encoding=e),)) for e in (born.encoding, rec(x=INT), rec(x=INT, y=INT, z=INT))]
    found = history((col("id"),), *rows_)
    assert sources(projected(found, 1))["s__3"] == Fill(value={"x": 1, "y": None, "z": None})


def test_a_default_of_a_float_is_the_nearest_float_also_as_a_double() -> None:
    made = col("f", FLOAT, nullable=False, default="0.1")
    found = history((col("id"),), (col("id"), made), (col("id"), replace(made, encoding=DOUBLE)))
    assert sources(projected(found, 1))["f__2"] == Fill(value=0.10000000149011612)


def test_a_kept_column_reads_null_in_rows_that_are_newer_than_its_end() -> None:
    gone = col("a", nullable=False, default="1", since=2, origin="a")
    found = history((col("id"),), (col("id"), col("a", nullable=False, default="1")), (col("id"),))
    columns = (found.newest.columns[0], gone)
    values = [sources(projected(found, writer, columns=columns))["a"] for writer in (1, 2, 3)]
    assert values == [Fill(value=1), take("a", INT), Fill(value=None)]


def test_in_an_envelope_a_key_is_looked_for_on_both_sides() -> None:
    found = history((col("id"), col("name")), envelope=DEBEZIUM)
    paths = {n: s.paths for n, s in sources(projected(found, 1, keys=("id",))).items() if isinstance(s, Take)}
    assert paths == {"id": (("after", "id"), ("before", "id")), "name": (("after", "name"),)}


def test_a_retyped_column_is_converted() -> None:
    found = history((col("a"),), (col("a", STRING),))
    assert sources(projected(found, 1)) == {"a__2": take("a", INT, STRING)}


def test_what_cannot_be_converted_is_told_column_by_column() -> None:
    first = (col("a", DATE), col("b", rec(x=DATE)), col("c"))
    found = history(first, (col("a", INT), col("b", rec(x=INT)), col("c")))
    assert projected(found, 1) == Unprojectable(
        writer=1, reasons=("column a: date does not fit int", "column b.x: date does not fit int"), fix=LAND_ANEW
    )


LAND_ANEW = "Land its events anew as the table has them, or move it away; it stays where it is."
ADD_NULL = "Set policies.add to null: rows from before the column then read NULL in it."
MIGRATE = "Set policies.semantic to migrate: its values then show beside the others."


def test_what_lets_a_file_in_is_told_where_all_of_it_can_be() -> None:
    """A policy that lets one column in is no help while another one is kept out."""
    added = col("b", DATE, nullable=False, default="7")
    first, then, last = ((col("t", TIMES[0]),), (col("t", TIMES[1]), added), (col("t", TIMES[1]), col("b")))
    told = [
        projected(history(*rows_), 1, baseline=3)
        for rows_ in ((first, then, last), ((*first, col("c", DATE)), (*then, col("c")), (*last, col("c"))))
    ]
    assert [found.fix for found in told if isinstance(found, Unprojectable)] == [f"{MIGRATE} {ADD_NULL}", LAND_ANEW]


def test_a_default_is_converted_with_its_column() -> None:
    added = col("a", nullable=False, default="7")
    found = history((col("id"),), (col("id"), added), (col("id"), replace(added, encoding=STRING, default='"x"')))
    assert sources(projected(found, 1))["a__2"] == Fill(value="7")


def test_a_file_that_would_read_a_default_which_its_column_can_no_longer_hold_is_refused() -> None:
    added = col("a", DATE, nullable=False, default="7")
    found = history((col("id"),), (col("id"), added), (col("id"), col("a", INT, nullable=False)))
    reason = "column a: the default that older rows read does not fit int: column a: date does not fit int"
    assert projected(found, 1) == Unprojectable(writer=1, reasons=(reason,), fix=ADD_NULL)


def test_rows_from_before_a_column_took_anothers_place_read_null_in_it() -> None:
    rows_ = ((col("a"),), (col("a", STRING, nullable=False, default='"x"'),))
    found = history(*rows_, splits=lambda one, other: one != other)
    assert sources(projected(found, 1)) == {"a__2": Fill(value=None)}


def carry(found: History, version: int, **more: Any) -> Carried | Fill:
    newest = found.newest
    layout = lay_out(found, baseline=1, version=newest.version)
    return carried(found, column=newest.columns[0], layout=layout, version=version, **more)


def same(encoding: Encoding) -> Reshape:
    return Keep(target=shown_type(encoding))


def test_a_column_that_did_not_change_is_carried_as_it_is() -> None:
    found = history((col("a"),), (col("b", aliases=("a",)),))
    assert [carry(found, v) for v in (1, 2)] == [Carried(name="a", shape=same(INT))] * 2


def test_a_widened_column_is_carried_from_where_it_stood() -> None:
    found = history((col("a"),), (col("a", dec(12, 2)),))
    shape = Convert(stored=Primitive.INT, target=shown_type(dec(12, 2)))
    assert [carry(found, v) for v in (1, 2)] == [
        Carried(name="a", shape=shape),
        Carried(name="a__2", shape=same(dec(12, 2))),
    ]


def test_rows_older_than_the_column_are_filled() -> None:
    found = history((col("id"),), (col("a", nullable=False, default="5"),))
    assert (carry(found, 1), carry(found, 1, fill_defaults=False)) == (Fill(value=5), Fill(value=None))


def test_rows_that_read_null_as_their_columns_type_changed_do_so_when_defaults_are_asked_for_again() -> None:
    rows_ = (col("a", STRING, nullable=False, default='"n/a"'), col("a", nullable=False))
    found = history((col("id"),), *((column,) for column in rows_))
    assert [carry(found, 1, fill_defaults=asked) for asked in (False, True)] == [Fill(value=None)] * 2


def test_a_version_that_is_no_longer_known_is_read_by_the_tables_type() -> None:
    whole = history((col("a"),), (col("a"), col("b")), (col("a", BIGINT),))
    layout = lay_out(whole, baseline=1, version=3)
    without = History(versions=(whole.versions[0], whole.versions[2]))
    found = carried(without, column=whole.newest.columns[0], layout=layout, version=2)
    assert found == Carried(name="a", shape=Convert(stored=Primitive.INT, target=Primitive.BIGINT))


def test_a_lossy_carry_is_refused() -> None:
    with pytest.raises(ValueError, match="column a: date does not fit int"):
        carry(history((col("a", DATE),), (col("a", INT),)), 1)


def test_what_is_not_known_of_a_columns_birth_is_null() -> None:
    whole = history((col("id"),), (col("id"), col("a", nullable=False, default="1")), (col("id"), col("a")))
    without = History(versions=(whole.versions[0], whole.versions[2]))
    assert sources(projected(without, 1))["a"] == Fill(value=None)


def named(leaf: Leaf, name: str) -> Leaf:
    return replace(leaf, name=f"io.debezium.time.{name}")


MICRO, NANO = named(BIGINT, "MicroDuration"), named(BIGINT, "NanoDuration")
INTERVAL = named(STRING, "Interval")
JSON, UUID = (replace(STRING, name=f"io.debezium.data.{name}") for name in ("Json", "Uuid"))
TIMES = [
    Leaf(type=Primitive.STRING, meaning=Meaning.TIME_MILLIS, name="io.debezium.time.Time"),
    Leaf(type=Primitive.STRING, meaning=Meaning.TIME_MICROS, name="io.debezium.time.MicroTime"),
    Leaf(type=Primitive.STRING, meaning=Meaning.TIME_MICROS, name="time-micros"),
]
NESTS: list[Callable[[Encoding], Encoding]] = [
    lambda e: e,
    lambda e: rec(x=e),
    lambda e: ListOf(element=e),
    lambda e: MapOf(key=STRING, value=e),
]


@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("semantic", ["hold", "migrate"])
@pytest.mark.parametrize(
    ("written", "shown", "told"),
    [
        (MICRO, NANO, "the same values mean something else"),
        (MICRO, BIGINT, "the same values mean something else"),
        (INT, TIMES[0], "the same values mean something else"),
        (INTERVAL, MICRO, "nothing says how one is written as the other"),
        (MICRO, INTERVAL, "nothing says how one is written as the other"),
        (named(STRING, "IsoDate"), DATE, "nothing says how one is written as the other"),
    ],
)
def test_values_of_which_nothing_says_what_they_are_in_the_table_are_refused(
    written: Encoding, shown: Encoding, told: str, semantic: Any, nest: Callable[[Encoding], Encoding]
) -> None:
    """Whether they came between two versions of the table's meaning, or before the table was made."""
    found = history((col("a", nest(shown)),), (col("a", nest(written)),), (col("a", nest(shown)),))
    policies = Policies(semantic=semantic)
    read = [projected(found, v, policies=policies) for v in (1, 3)]
    assert all(isinstance(one, Projection) for one in read)
    for baseline in (1, 3):
        late = projected(found, 2, baseline=baseline, policies=policies)
        assert isinstance(late, Unprojectable)
        (reason,) = late.reasons
        assert reason.endswith(told)


@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize(
    ("written", "shown", "refused"),
    [
        (TIMES[0], TIMES[1], True),
        (TIMES[1], TIMES[2], False),
        (INTERVAL, named(STRING, "IsoTime"), True),
        (named(STRING, "IsoTime"), named(STRING, "ZonedTime"), True),
        (INTERVAL, STRING, False),
        (JSON, UUID, False),
        (MILLIS, MICROS, False),
        (ZONED, MICROS, False),
        (DATE, replace(DATE, name="date"), False),
        (INT, BIGINT, False),
        (INT, STRING, False),
        (BIGINT, dec(19, 0), False),
    ],
)
def test_values_that_would_be_shown_otherwise_are_taken_where_the_configuration_says_so(
    written: Encoding, shown: Encoding, refused: bool, nest: Callable[[Encoding], Encoding]
) -> None:
    """One moment is the same in whatever unit it was written, and what has a conversion is converted."""
    found = history((col("a", nest(written)),), (col("a", nest(shown)),))
    held, taken = (
        projected(found, 1, baseline=2, policies=policies)
        for policies in (Policies(semantic="hold", retype="hold", widen="hold"), Policies(semantic="migrate"))
    )
    assert isinstance(taken, Projection)
    assert isinstance(held, Unprojectable) == refused
    if isinstance(held, Unprojectable):
        assert held.fix == MIGRATE


@pytest.mark.parametrize(
    ("written", "shown", "told"),
    [
        (TIMES[0], TIMES[1], "is shown otherwise than before: one key would be two rows"),
        (TIMES[1], TIMES[2], ""),
        (MILLIS, MICROS, "is shown otherwise than before: one key would be two rows"),
        (STRING, INT, "was a text: two texts can become one int"),
        (INTERVAL, named(STRING, "IsoTime"), "is shown otherwise than before: one key would be two rows"),
        (JSON, UUID, ""),
        (INT, STRING, ""),
        (INT, BIGINT, ""),
    ],
)
def test_a_key_of_an_earlier_version_is_refused_where_it_would_be_another_row(
    written: Encoding, shown: Encoding, told: str
) -> None:
    found = history((col("id", written),), (col("id", shown),))
    read = projected(found, 1, baseline=2, keys=("id",), policies=Policies(semantic="migrate"))
    reasons = read.reasons if isinstance(read, Unprojectable) else ()
    assert reasons == ((f"key column id {told}",) if told else ())


def test_a_default_of_which_nothing_says_what_it_is_in_the_table_is_refused() -> None:
    added = col("a", MICRO, nullable=False, default="5")
    found = history((col("id"),), (col("id"), added), (col("id"), replace(added, encoding=NANO)))
    reason = (
        "the default that older rows read in column a: io.debezium.time.MicroDuration to "
        "io.debezium.time.NanoDuration: the same values mean something else"
    )
    assert projected(found, 1, baseline=3) == Unprojectable(writer=1, reasons=(reason,), fix=ADD_NULL)
    assert sources(projected(found, 1, baseline=3, fill_defaults=False))["a"] == Fill(value=None)


@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("keys", [(), ("a",)])
def test_values_that_each_step_on_the_way_let_through_are_not_refused_at_once(
    nest: Callable[[Encoding], Encoding], keys: tuple[str, ...]
) -> None:
    """A text that lost its label and got another one differs from its neighbours in the label alone."""
    found = history(*((col("a", nest(text)),) for text in (INTERVAL, STRING, JSON)))
    for baseline in (1, 3):
        assert isinstance(projected(found, 1, baseline=baseline, keys=keys), Projection)
    at_once = History(versions=(found.versions[0], found.versions[2]))
    assert isinstance(projected(at_once, 1, baseline=3, keys=keys), Unprojectable)


def test_a_step_that_only_a_policy_lets_through_is_none_that_passed() -> None:
    """A number that became a text, and the text a time of day, is no time of day."""
    found = history((col("a"),), (col("a", STRING),), (col("a", TIMES[0]),))
    assert isinstance(projected(found, 1, baseline=3, policies=Policies(semantic="migrate")), Unprojectable)


@pytest.mark.parametrize("nest", NESTS)
def test_a_table_that_is_past_a_change_of_meaning_takes_files_of_before_whatever_the_configuration_says(
    nest: Callable[[Encoding], Encoding],
) -> None:
    """A release lets it through once, and its rows of before are shown as these will be."""
    millis, micros = (col("t", nest(time)) for time in TIMES[:2])
    found = history((col("id"),), (col("id"), millis), (col("id"), millis), (col("id"), micros))
    read = [projected(found, 3, baseline=baseline) for baseline in (1, 2, 3, 4)]
    assert [isinstance(one, Projection) for one in read] == [True, True, True, False]
    assert isinstance(projected(found, 2, baseline=3), Projection)


def test_a_change_that_went_back_before_the_table_followed_it_is_none_that_it_is_past() -> None:
    found = history(*((col("t", TIMES[n]),) for n in (0, 1, 0)))
    refused = projected(found, 2)
    assert isinstance(refused, Unprojectable)
    assert refused.fix == MIGRATE


@pytest.mark.parametrize(("baseline", "value"), [(1, "00:00:00.000"), (2, "00:00:00.000"), (3, None)])
def test_a_file_reads_the_default_that_rows_of_its_version_read_in_the_table(baseline: int, value: str | None) -> None:
    """Of a newer table a file from before is told what lets it in, and not to take the default from its rows."""
    added = col("t", TIMES[0], nullable=False, default="0")
    found = history((col("id"),), (col("id"), added), (col("id"), replace(added, encoding=TIMES[1])))
    read = projected(found, 1, baseline=baseline)
    if value is None:
        assert isinstance(read, Unprojectable)
        assert read.fix == MIGRATE
    else:
        assert sources(read)["t"] == Fill(value=value)


def at(type_: Primitive, meaning: Meaning = Meaning.PLAIN) -> OrderingField:
    return OrderingField(path=("at",), type=type_, meaning=meaning)


SECONDS = Leaf(type=Primitive.STRING, meaning=Meaning.TIME_MILLIS)


@pytest.mark.parametrize(
    ("before", "field", "expected"),
    [
        (MICROS, at(Primitive.TIMESTAMP, Meaning.EPOCH_MILLIS), at(Primitive.TIMESTAMP, Meaning.EPOCH_MICROS)),
        (ZONED, at(Primitive.TIMESTAMP, Meaning.EPOCH_MILLIS), at(Primitive.TIMESTAMP, Meaning.ZONED_TIMESTAMP)),
        (BIGINT, at(Primitive.INT), at(Primitive.INT)),
        (DATE, at(Primitive.TIMESTAMP, Meaning.EPOCH_MILLIS), "was date and is timestamp"),
        (BIGINT, at(Primitive.STRING), "was bigint and is string"),
        (STRING, at(Primitive.BIGINT), "was string and is bigint"),
        (SECONDS, at(Primitive.STRING), "was string and is string"),
        (rec(x=INT), at(Primitive.INT), "was struct<x:int> and is int"),
    ],
)
def test_what_orders_events_is_read_as_it_was_written_where_it_has_the_tables_order(
    before: Encoding, field: OrderingField, expected: OrderingField | str
) -> None:
    found = history((col("id"), col("AT", before)), (col("id"),))
    columns = found.newest.columns
    if isinstance(expected, str):
        reason = f"at, which tells newer events from older ones, {expected}"
        refused = Unprojectable(writer=1, reasons=(reason,), fix=LAND_ANEW)
        assert projected(found, 1, columns=columns, ordering=(field,)) == refused
    else:
        read = projected(found, 1, columns=columns, ordering=(field,))
        assert isinstance(read, Projection)
        assert read.ordering == (expected,)


def test_what_orders_a_table_is_looked_for_in_files_that_lack_it_too() -> None:
    """They read NULL there."""
    read = projected(history((col("id"),)), 1, ordering=(at(Primitive.BIGINT),))
    assert isinstance(read, Projection)
    assert read.ordering == (at(Primitive.BIGINT),)


def test_of_names_that_differ_in_case_the_very_one_orders_events() -> None:
    event = rec(AT=BIGINT, at=MICROS, At=BIGINT)
    found = read_history([replace(version(1, col("id")), event=event)])
    read = projected(found, 1, ordering=(at(Primitive.TIMESTAMP, Meaning.EPOCH_MILLIS),))
    assert isinstance(read, Projection)
    assert read.ordering == (at(Primitive.TIMESTAMP, Meaning.EPOCH_MICROS),)


@given(histories(), st.data())
def test_a_file_of_any_version_reads_as_if_every_version_had_rewritten_it(found: History, data: st.DataObject) -> None:
    shown = data.draw(st.integers(1, found.newest.version), "shown")
    written = data.draw(st.integers(1, shown), "written")
    baseline = data.draw(st.integers(1, shown), "baseline")
    row = data.draw(rows(found.versions[written - 1].columns))
    taken = {
        name: source.value if isinstance(source, Fill) else reshaped(row[source.paths[0][0]], source.shape)
        for name, source in sources(projected(found, written, baseline=baseline, version=shown)).items()
    }
    layout = lay_out(found, baseline=baseline, version=shown)
    assert taken == physical(found, layout, model(found, row, written=written, shown=shown))


def physical(found: History, layout: Layout, state: dict[Any, Any]) -> dict[str, Any]:
    """Return a row as the long-lived table holds it under the layout's version."""
    version = found.at(layout.version)
    assert version is not None
    return {layout.current(c).name: state[c.life] for c in version.columns}


@given(histories(), st.data())
def test_rows_of_any_version_in_the_table_read_the_same_before_and_after_a_rewrite(
    found: History, data: st.DataObject
) -> None:
    shown = data.draw(st.integers(1, found.newest.version), "shown")
    stored = data.draw(st.integers(1, shown), "stored")
    written = data.draw(st.integers(1, stored), "written")
    baseline = data.draw(st.integers(1, stored), "baseline")
    row = data.draw(rows(found.versions[written - 1].columns))
    then, now = (lay_out(found, baseline=baseline, version=v) for v in (stored, shown))
    held = physical(found, then, model(found, row, written=written, shown=stored))
    columns = found.versions[shown - 1].columns
    read = {c.life: carried_value(held, carried(found, column=c, layout=now, version=stored)) for c in columns}
    assert read == model(found, row, written=written, shown=shown)


def test_elements_of_arrays_follow_their_members() -> None:
    before, after = ListOf(element=rec(x=INT, y=INT)), ListOf(element=rec(x=BIGINT))
    found = history((col("l", before),), (col("l", after),))
    (source,) = sources(projected(found, 1)).values()
    assert isinstance(source, Take)
    assert reshaped([{"x": 1, "y": 2}, None], source.shape) == [{"x": 1}, None]
