"""What is due goes, in its order and for all tables, and nothing that a view may name."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from schemasync.app.vacuuming import Vacuumed, vacuum
from schemasync.core.layering import Mode
from schemasync.errors import ConflictError, DataError, SchemasyncError, StorageError
from tests.app.still import Still
from tests.app.test_in_one_process import DAY, HOUR, Small

SECOND = 1000
"""Two times are never the same, so the second is a little later than the clock says."""
NOTHING = {"partitions": 0, "directories": 0, "files": 0}
SUPERSEDED = {"partitions": 3, "directories": 0, "files": 2}


@pytest.fixture
def folded(tmp_path: Path) -> Small:
    """A base that was written anew: the one before it and two deltas are superseded, two landed files are in it."""
    small = Small(tmp_path, reader_grace="1h", vacuum_retention="1d")
    for name in ("a", "b"):
        small.land(name, (1, name, "u", ord(name)))
        small.compact(Mode.MAJOR)
    return small


def cleaned(small: Small, *, dry_run: bool = False) -> Vacuumed:
    (done,) = vacuum(small.workspace, dry_run=dry_run).tables
    return done


def said(done: Vacuumed) -> tuple[object, object, type[SchemasyncError] | None]:
    return done.due.to_json(), done.left.to_json(), type(done.error) if done.error else None


def test_what_is_due_goes_in_its_order(folded: Small) -> None:
    there = len(folded.files())
    assert said(cleaned(folded)) == (NOTHING, NOTHING, None)
    folded.now += HOUR + SECOND
    assert said(cleaned(folded)) == (SUPERSEDED, NOTHING, None)
    assert (len(folded.partitions), folded.manifest.admitted, len(folded.files()) < there) == (1, (), True)
    folded.now += DAY
    assert said(cleaned(folded)) == ({"partitions": 0, "directories": 3, "files": 0}, NOTHING, None)
    assert (folded.manifest.superseded, folded.rows()) == ((), {1: "b"})
    assert said(cleaned(folded)) == (NOTHING, NOTHING, None)


def test_a_dry_run_says_what_is_due_and_leaves_it(folded: Small) -> None:
    folded.now += HOUR + SECOND
    before = folded.manifest, folded.files(), folded.partitions
    assert said(cleaned(folded, dry_run=True)) == (SUPERSEDED, SUPERSEDED, None)
    assert (folded.manifest, folded.files(), folded.partitions) == before


def test_of_what_cannot_go_the_rest_goes_and_that_is_left(folded: Small) -> None:
    folded.now += HOUR + SECOND
    lake = type(folded.workspace.storage(folded.target).lake)
    with patch.object(lake, "delete", side_effect=StorageError("denied")):
        done = cleaned(folded)
    assert said(done) == (SUPERSEDED, {"partitions": 0, "directories": 0, "files": 2}, StorageError)
    assert said(cleaned(folded)) == ({"partitions": 0, "directories": 0, "files": 2}, NOTHING, None)


def test_a_storage_that_goes_away_meanwhile_is_this_table_s_failure(folded: Small) -> None:
    folded.now += HOUR + SECOND
    lake = type(folded.workspace.storage(folded.target).lake)
    read, lost = lake.read, list[bool]()

    def read_until_lost(*args: Any) -> bytes:
        if lost:
            raise StorageError("away")
        return read(*args)

    def lose(*_: Any, **__: Any) -> None:
        lost.append(True)
        raise StorageError("lost")

    with patch.multiple(lake, delete=lose, read=read_until_lost):
        done = cleaned(folded)
    assert said(done)[::2] == (SUPERSEDED, StorageError)


def test_nothing_goes_that_a_view_of_before_may_name(folded: Small) -> None:
    folded.now += HOUR + SECOND
    folded.still.metastore.set_view_text("lake", "student_view", "SELECT * FROM lake.student")
    done = cleaned(folded)
    assert said(done) == (SUPERSEDED, SUPERSEDED, ConflictError)
    assert "Put that right first: schemasync apply student" in str(done.error)


def test_nothing_goes_before_a_later_state_that_was_written_is_in_force(folded: Small) -> None:
    folded.land("c", (1, "c", "u", 200))
    killed = patch.object(folded.still.metastore, "swap_properties", side_effect=ConflictError("killed"))
    with killed, pytest.raises(ConflictError):
        folded.apply()
    folded.now += HOUR + SECOND
    assert said(cleaned(folded)) == (SUPERSEDED, SUPERSEDED, ConflictError)
    folded.apply()
    assert said(cleaned(folded)) == (SUPERSEDED, NOTHING, None)


def test_a_table_whose_state_cannot_be_read_is_an_error_and_others_are_cleaned_up(folded: Small) -> None:
    folded.now += HOUR + SECOND
    for path in (folded.root / "_schemasync").rglob("*.json"):
        path.write_text("{")
    done = cleaned(folded)
    assert said(done) == (NOTHING, NOTHING, DataError)
    assert "schemasync status student" in str(done.error)


def test_a_table_that_is_not_there_has_nothing_that_is_due(tmp_path: Path) -> None:
    still = Still(tmp_path)
    still.register('{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}')
    (done,) = vacuum(still.workspace).tables
    assert said(done) == (NOTHING, NOTHING, None)
