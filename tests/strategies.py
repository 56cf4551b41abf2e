"""Generated values of the core's families, shared by the tests of all modules."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from schemasync.core.encoding import Encoding, Leaf, ListOf, MapOf, Meaning, Member, Record
from schemasync.core.types import MAX_PRECISION, Array, Decimal, Map, Primitive, Struct, StructField, Type

avro_names: st.SearchStrategy[str] = st.builds(
    "{}{}".format,
    st.sampled_from(string.ascii_letters + "_"),
    st.text(string.ascii_letters + string.digits + "_", max_size=8),
)

any_names: st.SearchStrategy[str] = st.one_of(
    st.text('ab`" -:<,>()\n', min_size=1, max_size=5), st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
)
"""Struct field names as only Spark and Trino take them: back-ticks, quotes, blanks, line ends, all scripts."""


@st.composite
def decimals(draw: st.DrawFn) -> Decimal:
    precision = draw(st.integers(1, MAX_PRECISION))
    return Decimal(precision=precision, scale=draw(st.integers(0, precision)))


def types(names: st.SearchStrategy[str] = avro_names) -> st.SearchStrategy[Type]:
    """All types, structs with field names of the given strategy, unique also when case is ignored."""

    def wider(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
        fields = st.builds(StructField, name=names, type=inner)
        several = st.lists(fields, min_size=1, max_size=3, unique_by=lambda f: f.name.lower()).map(tuple)
        return st.one_of(
            st.builds(Array, element=inner),
            st.builds(Map, key=inner, value=inner),
            st.builds(Struct, fields=several),
        )

    leaves: st.SearchStrategy[Type] = st.one_of(st.sampled_from(Primitive), decimals())
    return st.recursive(leaves, wider, max_leaves=6)


MEANINGS: dict[Meaning, tuple[Primitive, ...]] = {
    Meaning.PLAIN: tuple(p for p in Primitive if p not in {Primitive.DATE, Primitive.TIMESTAMP}),
    Meaning.DAYS: (Primitive.DATE,),
    Meaning.EPOCH_MILLIS: (Primitive.TIMESTAMP,),
    Meaning.EPOCH_MICROS: (Primitive.TIMESTAMP,),
    Meaning.ZONED_TIMESTAMP: (Primitive.TIMESTAMP,),
    Meaning.TIME_MILLIS: (Primitive.STRING,),
    Meaning.TIME_MICROS: (Primitive.STRING,),
    Meaning.TIME_NANOS: (Primitive.STRING,),
    Meaning.VARIABLE_DECIMAL: (Primitive.STRING,),
    Meaning.UUID_BYTES: (Primitive.STRING,),
}
"""Which shown types each meaning of a column can have."""


@st.composite
def leaves(draw: st.DrawFn) -> Leaf:
    name = draw(st.sampled_from(["", "example.Name", "io.debezium.data.Json"]))
    if draw(st.booleans()):
        return Leaf(type=draw(decimals()), name=name)
    meaning = draw(st.sampled_from([*MEANINGS]))
    return Leaf(type=draw(st.sampled_from(MEANINGS[meaning])), meaning=meaning, name=name)


def encodings() -> st.SearchStrategy[Encoding]:
    """All encodings as Avro schemas can produce them."""

    def wider(inner: st.SearchStrategy[Encoding]) -> st.SearchStrategy[Encoding]:
        fields = st.builds(Member, name=avro_names, encoding=inner, nullable=st.booleans())
        members = st.lists(fields, min_size=1, max_size=3, unique_by=lambda m: m.name.lower()).map(tuple)
        branches = st.lists(inner, min_size=2, max_size=3).map(
            lambda found: tuple(Member(name=f"member{n}", encoding=e) for n, e in enumerate(found))
        )
        return st.one_of(
            st.builds(ListOf, element=inner),
            st.builds(MapOf, key=st.just(Leaf(type=Primitive.STRING)), value=inner),
            st.builds(MapOf, key=leaves(), value=inner, entries=st.just(True)),
            st.builds(Record, members=members),
            st.builds(Record, members=branches, union=st.just(True)),
        )

    return st.recursive(leaves(), wider, max_leaves=6)
