from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.in_place import FORMS, LIST_LAYOUTS, Stored, forms_of, misreads
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, StructField, Type
from tests.strategies import decimals, types

P = Primitive
DECIMAL = Decimal(precision=9, scale=2)
NESTED = Struct(fields=(StructField(name="N", type=P.INT), StructField(name="tags", type=Array(element=P.STRING))))
DECLARED: tuple[tuple[str, Type], ...] = (
    ("id", P.BIGINT), ("money", DECIMAL), ("rows", Array(element=NESTED)), ("attrs", Map(key=P.STRING, value=P.DATE)),
)  # fmt: skip


def stored(**changed: str) -> list[Stored]:
    forms = {
        "id": "INT64",
        "money": "INT32 decimal(9,2)",
        "rows.list.element.n": "INT32",
        "rows.list.element.tags.list.element": "BYTE_ARRAY string",
        "attrs.key_value.key": "BYTE_ARRAY string",
        "attrs.key_value.value": "INT32 date",
    }
    return [Stored(path=path, form=form) for path, form in (forms | changed).items()]


def test_a_file_that_holds_what_is_declared_is_read_right() -> None:
    assert misreads(DECLARED, stored()) == ()


def test_columns_that_nothing_declares_are_never_read() -> None:
    assert misreads(DECLARED, stored(more="INT96")) == ()


def test_each_column_that_would_be_misread_is_named() -> None:
    changed = {"id": "INT32", "money": "INT32 decimal(9,3)", "rows.list.element.n": "INT64"}
    assert misreads((*DECLARED, ("gone", P.FLOAT)), stored(**changed)) == (
        "id is stored as INT32 and declared as bigint",
        "money is stored as INT32 decimal(9,3) and declared as decimal(9,2)",
        "rows.list.element.n is stored as INT64 and declared as int",
        "gone (float) is missing",
    )


@pytest.mark.parametrize("layout", LIST_LAYOUTS)
def test_lists_may_be_laid_out_as_spark_does_it_in_either_mode(layout: str) -> None:
    assert misreads([("a", Array(element=P.INT))], [Stored(path=f"A.{layout}", form="INT32")]) == ()


@pytest.mark.parametrize(
    ("precision", "homes"),
    [
        (9, {"FIXED_LEN_BYTE_ARRAY", "INT32"}),
        (10, {"FIXED_LEN_BYTE_ARRAY", "INT64"}),
        (18, {"FIXED_LEN_BYTE_ARRAY", "INT64"}),
        (19, {"FIXED_LEN_BYTE_ARRAY"}),
    ],
)
def test_a_decimal_is_read_from_the_physical_types_that_its_digits_fit(precision: int, homes: set[str]) -> None:
    assert forms_of(Decimal(precision=precision, scale=1)) == {f"{home} decimal({precision},1)" for home in homes}


def test_every_primitive_has_its_forms() -> None:
    assert FORMS.keys() == set(Primitive)


def test_no_form_is_read_as_two_types() -> None:
    forms = [form for listed in FORMS.values() for form in listed]
    assert len(forms) == len(set(forms))


def leaves(name: str, type_: Type) -> list[Stored]:
    """Return the file that holds a column as its type says, in the first form of each leaf."""
    match type_:
        case Array(element=element):
            return leaves(f"{name}.list.element", element)
        case Map(key=key, value=value):
            return leaves(f"{name}.key_value.key", key) + leaves(f"{name}.key_value.value", value)
        case Struct(fields=fields):
            return [leaf for field in fields for leaf in leaves(f"{name}.{field.name}", field.type)]
        case _:
            return [Stored(path=name, form=min(forms_of(type_)))]


@given(types())
def test_a_file_of_the_declared_type_is_read_in_place(type_: Type) -> None:
    assert misreads([("c", type_)], leaves("c", type_)) == ()


LEAVES = st.sampled_from(Primitive) | decimals()


@given(LEAVES, LEAVES)
def test_a_file_of_another_type_never_is(one: Primitive | Decimal, other: Primitive | Decimal) -> None:
    assert (misreads([("c", other)], leaves("c", one)) == ()) == (one == other)
