from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.names import Dialect
from schemasync.core.type_strings import parse_type, print_type
from schemasync.core.types import Array, Decimal, Map, Primitive, Struct, StructField, Type
from schemasync.errors import SchemaError
from tests.strategies import any_names, types

NESTED = Struct(
    fields=(
        StructField(name="a", type=Primitive.INT),
        StructField(name="Order", type=Array(element=Primitive.STRING)),
        StructField(name="order", type=Map(key=Primitive.STRING, value=Decimal(precision=10, scale=2))),
        StructField(name="t", type=Primitive.TIMESTAMP),
    )
)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (Dialect.SPARK, "struct<a:int,Order:array<string>,order:map<string,decimal(10,2)>,t:timestamp>"),
        (Dialect.HIVE, "struct<a:int,Order:array<string>,order:map<string,decimal(10,2)>,t:timestamp>"),
        (Dialect.TRINO, 'row(a integer, "Order" array(varchar), "order" map(varchar, decimal(10,2)), t timestamp(6))'),
    ],
)
def test_a_nested_type_prints_as_the_engine_writes_it(dialect: Dialect, text: str) -> None:
    assert print_type(NESTED, dialect) == text


@given(types(any_names))
def test_spark_reads_back_what_it_printed(t: Type) -> None:
    assert parse_type(print_type(t, Dialect.SPARK), Dialect.SPARK) == t


@given(types(any_names))
def test_trino_reads_back_what_it_printed(t: Type) -> None:
    assert parse_type(print_type(t, Dialect.TRINO), Dialect.TRINO) == t


@given(types())
def test_hive_reads_back_what_it_printed(t: Type) -> None:
    assert parse_type(print_type(t, Dialect.HIVE), Dialect.HIVE) == t


@given(types())
def test_a_statement_of_hive_has_every_name_of_a_field_in_quotes(t: Type) -> None:
    """Its SQL reserves words there, too, such as ``order``; its metastore has no quotes."""
    declared = print_type(t, Dialect.HIVE, declared=True)
    assert declared.replace("`", "") == print_type(t, Dialect.HIVE)
    assert parse_type(declared, Dialect.SPARK) == t
    assert print_type(NESTED, Dialect.HIVE, declared=True).startswith(
        "struct<`a`:int,`Order`:array<string>,`order`:map<"
    )


@given(types(any_names))
def test_hive_prints_what_it_can_carry_or_refuses(t: Type) -> None:
    try:
        text = print_type(t, Dialect.HIVE)
    except SchemaError:
        return
    assert parse_type(text, Dialect.HIVE) == t


@given(st.sampled_from(Dialect), st.text() | st.text('structowmapi<>():,`"1 '))
def test_any_text_is_a_type_or_a_schema_error(dialect: Dialect, text: str) -> None:
    try:
        parsed = parse_type(text, dialect)
    except SchemaError:
        return
    assert parse_type(print_type(parsed, dialect), dialect) == parsed


def test_hive_takes_letters_of_all_scripts_bare_and_spark_takes_them_quoted() -> None:
    t = Struct(fields=(StructField(name="größe", type=Primitive.INT),))
    printed = {d: print_type(t, d) for d in (Dialect.HIVE, Dialect.SPARK)}
    assert printed == {Dialect.HIVE: "struct<größe:int>", Dialect.SPARK: "struct<`größe`:int>"}
    assert all(parse_type(text, dialect) == t for dialect, text in printed.items())


@pytest.mark.parametrize("name", ["a-b", "a b", "a.b", "a²", "\N{DESERET CAPITAL LETTER LONG I}", "a`"])
def test_spark_quotes_special_struct_fields_and_hive_refuses_them(name: str) -> None:
    t = Struct(fields=(StructField(name=name, type=Primitive.INT),))
    printed = print_type(t, Dialect.SPARK)
    assert printed == f"struct<`{name.replace('`', '``')}`:int>"
    assert parse_type(printed, Dialect.SPARK) == t
    with pytest.raises(SchemaError, match=r"does not fit into a Hive type.*SPARK-39936"):
        print_type(t, Dialect.HIVE)


def test_blanks_and_case_of_type_words_do_not_matter() -> None:
    parsed = parse_type(" STRUCT < A : Decimal ( 10 , 2 ) > \n", Dialect.SPARK)
    assert parsed == Struct(fields=(StructField(name="A", type=Decimal(precision=10, scale=2)),))


@pytest.mark.parametrize("precision", [3, 6, 9])
def test_the_precision_of_a_trino_timestamp_is_a_setting_of_its_connector(precision: int) -> None:
    assert parse_type(f"timestamp({precision})", Dialect.TRINO) is Primitive.TIMESTAMP


@pytest.mark.parametrize(
    ("dialect", "text", "why"),
    [
        (Dialect.SPARK, "", "it ends too early"),
        (Dialect.SPARK, "array<int", "it ends too early"),
        (Dialect.SPARK, "struct<", "it ends too early"),
        (Dialect.SPARK, "varchar(10)", "'varchar' is no type that schemasync knows"),
        (Dialect.SPARK, "int int", "unexpected 'int'"),
        (Dialect.SPARK, "array(int)", "expected <, found '('"),
        (Dialect.SPARK, "struct<a:int;b:int>", "character 13 starts no name and no mark"),
        (Dialect.SPARK, "struct<é:int>", "'é' is no field name"),
        (Dialect.SPARK, "struct<``:int>", "character 8 starts no name and no mark"),
        (Dialect.HIVE, "struct<`a`:int>", "'`a`' is no field name"),
        (Dialect.SPARK, "decimal(39,0)", "decimal(39,0) is out of range"),
        (Dialect.SPARK, "decimal(5,6)", "decimal(5,6) is out of range"),
        (Dialect.SPARK, "decimal(a,0)", "'a' is no precision and no scale"),
        (Dialect.TRINO, "timestamp(4)", "expected 3 or 6 or 9, found '4'"),
        (Dialect.TRINO, "int", "'int' is no type"),
        (Dialect.SPARK, "array<" * 200, "nested deeper than 100 levels"),
    ],
)
def test_what_is_no_type_is_refused_with_the_reason(dialect: Dialect, text: str, why: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_type(text, dialect)
    assert why in caught.value.why
