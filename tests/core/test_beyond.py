from __future__ import annotations

import pytest

from schemasync.core.beyond import EXAMPLES, FIRST_US, LAST_US, Beyond, Shown, findings, lost, nearest, zoned_micros
from schemasync.core.diagnostics import CODES

NEAREST, NULL = Shown.NEAREST, Shown.NULL


def beyond(path: str, column: str, shown: Shown, count: int, sample: str) -> Beyond:
    return Beyond(path=path, column=column, shown=shown, count=count, sample=sample)


FOUND = (
    beyond("b", "until", NEAREST, 2, "infinity"),
    beyond("a", "money", NULL, 1, "100"),
    beyond("c", "until", NEAREST, 3, "-infinity"),
    beyond("b", "until", NULL, 1, "x"),
    beyond("b", "money", NULL, 4, "200"),
)


def test_each_column_is_told_once_with_its_count_and_first_value() -> None:
    assert [(d.code, d.message) for d in findings(FOUND)] == [
        ("SS309", "money: 5 values are beyond its type, first 100 in a"),
        ("SS308", "until: 5 values are beyond its type, first infinity in b"),
        ("SS309", "until: 1 value is beyond its type, first x in b"),
    ]


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (1, "v: 1 create lacks its value, as an update of the primary key does, first in a"),
        (2, "v: 2 creates lack their value, as an update of the primary key does, first in a"),
    ],
)
def test_creates_that_lack_a_value_are_told(count: int, told: str) -> None:
    assert [(d.code, d.message) for d in findings([beyond("a", "v", Shown.PLACEHOLDER, count, "?")])] == [
        ("SS320", told)
    ]


def test_what_a_file_loses_is_what_shows_as_null() -> None:
    assert [lost(FOUND, path) for path in "abc"] == [1, 5, 0]


@pytest.mark.parametrize(("count", "shown"), [(-9, -5), (-5, -5), (0, 0), (5, 5), (9, 5)])
def test_the_nearest_value_is_within_both_ends(count: int, shown: int) -> None:
    assert nearest(count, -5, 5) == shown


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0), ("1969-12-31T23:59:59.999999+00:00", -1), ("1970-01-01T01:00:00+01:00", 0),
        ("infinity", LAST_US + 1), ("+infinity", LAST_US + 1), ("Infinity", LAST_US + 1), ("-infinity", FIRST_US - 1),
        ("+10000-01-01T00:00:00Z", LAST_US + 1), ("0000-12-31T00:00:00Z", FIRST_US - 1),
        ("-0044-03-15T00:00:00Z", FIRST_US - 1), ("9999-12-31T23:59:59.999999Z", LAST_US),
        ("9999-12-31T23:59:59.999999-01:00", LAST_US + 3_600_000_000),
    ],
)  # fmt: skip
def test_a_timestamp_with_an_offset_is_an_instant(text: str, micros: int) -> None:
    assert zoned_micros(text) == micros


@pytest.mark.parametrize(
    ("text", "why"), [("yesterday", "is not ISO 8601"), ("2026-11-20T01:02:03", "has no offset"), ("", "is not ISO")]
)
def test_other_texts_are_no_timestamps(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        zoned_micros(text)


def test_the_published_examples_show_both_outcomes_by_their_codes() -> None:
    assert {e.shown for e in EXAMPLES} == {None, NEAREST, NULL}
    assert {s.value for s in Shown} <= CODES.keys()
