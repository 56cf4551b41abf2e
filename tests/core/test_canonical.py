from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.core.canonical import canonical_text, fingerprint


def test_a_fingerprint_does_not_depend_on_the_order_of_keys() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1}) != fingerprint({"a": 1, "b": [3]})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.none() | st.integers(0, 4),
)
def test_equal_json_has_one_canonical_text_however_it_is_written(value: object, indent: int | None) -> None:
    assert canonical_text(json.dumps(value, indent=indent, ensure_ascii=False)) == canonical_text(json.dumps(value))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_what_is_no_json_is_its_own_canonical_text(text: str) -> None:
    assert canonical_text(text) == text
