"""PostgreSQL's events in the order of their commits, as Debezium's ``source.sequence`` and ``source.lsn`` tell it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemasync.core.encoding import Leaf, Meaning
from schemasync.core.types import Primitive
from schemasync.errors import DataError
from schemasync.io.parquet.values import Losses, decode

PLACES = Leaf(type=Primitive.BIGINT, meaning=Meaning.LOG_SEQUENCE)


def decoded(texts: Sequence[str | None]) -> list[int | None]:
    found: list[int | None] = decode(pa.array(texts, pa.string()), PLACES, Losses()).to_pylist()
    return found


def test_the_last_commit_counts_and_without_one_the_own_place() -> None:
    texts = [
        '["37098112","37117640"]',
        '[null,"36973840"]',
        "[null,null]",
        '["7", null]',
        '[ null , "9223372036854775807"]',
    ]
    assert decoded([*texts, None]) == [37098112, 36973840, None, 7, 2**63 - 1, None]
    assert decoded([]) == []


@pytest.mark.parametrize("text", ["", "7", "[7,8]", '["7"]', '["a","b"]', '["7","8","9"]', '["7","8"', '["","8"]'])
def test_what_is_no_such_list_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="no list of two places in a log"):
        decoded(['["1","2"]', text])


def test_a_place_that_no_number_holds_is_refused() -> None:
    with pytest.raises(DataError):
        decoded([f'["{2**63}","8"]'])


Step = tuple[str, int, int]
"""What is done, by which transaction, with which key."""

STEPS = st.lists(
    st.tuples(st.sampled_from(["change", "change", "commit", "read"]), st.integers(0, 3), st.integers(0, 2)),
    max_size=40,
)


class Database:
    """Transactions that change rows, each of which is locked until its transaction ends, and what Debezium sends."""

    def __init__(self) -> None:
        self.place = 100
        self.commit: int | None = None
        self.open: dict[int, list[tuple[int, int]]] = {}
        self.sent: list[tuple[int, str, int | None]] = []

    def do(self, what: str, transaction: int, key: int) -> None:
        self.place += 10
        if what == "change":
            locked = any(key == changed for t, of_it in self.open.items() if t != transaction for changed, _ in of_it)
            if not locked:
                self.open.setdefault(transaction, []).append((key, self.place))
        elif what == "commit":
            for changed, place in self.open.pop(transaction, ()):
                self.send(changed, place)
            self.commit = self.place
        else:
            # What an incremental snapshot reads stands between two commits of its own.
            self.commit = self.place
            self.send(key, None)

    def send(self, key: int, place: int | None) -> None:
        own = self.place if place is None else place
        self.sent.append((key, json.dumps([self.commit and str(self.commit), str(own)]), place))


@given(STEPS)
@example([("change", 0, 0), ("commit", 0, 0), ("change", 1, 0), ("read", 0, 0), ("commit", 1, 0)])
@example([("change", 0, 0), ("change", 1, 1), ("commit", 1, 0), ("commit", 0, 0), ("read", 0, 0)])
def test_of_a_row_the_last_event_that_was_sent_is_the_newest(steps: list[Step]) -> None:
    database = Database()
    for step in steps:
        database.do(*step)
    first = decoded([sequence for _, sequence, _ in database.sent])
    for key in {key for key, _, _ in database.sent}:
        of_it = [n for n, sent in enumerate(database.sent) if sent[0] == key]
        assert max(of_it, key=lambda n: (first[n] or -1, database.sent[n][2] or -1)) == of_it[-1]
