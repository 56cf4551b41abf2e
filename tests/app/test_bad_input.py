"""What goes wrong with tables and landed files: one clear finding each, nothing lost, and the other table goes on.

Every test breaks something about ``shop.student``, looks at what is told, repairs the cause, and sees the next run do
the rest; ``shop.course`` stands beside it and must never notice.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import resource
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemasync.app import admitting
from schemasync.app.applying import Applied, apply
from schemasync.app.compacting import Compacted
from schemasync.app.kept_schemas import SCHEMAS
from schemasync.app.planning import plan
from schemasync.app.status import status
from schemasync.app.workspace import Storage
from schemasync.core.diagnostics import Severity
from schemasync.core.manifest import FORMAT
from schemasync.core.mapping import TableTarget
from schemasync.core.properties import STATE
from schemasync.errors import DataError, OwnershipError, SchemasyncError, StorageError
from schemasync.io.parquet.arrow import ArrowFiles
from tests.app.mortal import Fuse, KilledError, mortal
from tests.io.failing import Failing
from tests.lab import HOUR, Begun, Lab

pytestmark = [pytest.mark.spark, pytest.mark.one_spark]

STUDENT, COURSE = "shop.student", "shop.course"
NAME = ("name", ["null", "string"])
Rows = list[dict[str, Any]]


def event(id_: int | None, name: str, op: str = "c") -> dict[str, Any]:
    return {"id": id_, "name": name, "op": op, "ts_ms": 1}


def row(id_: int, name: str) -> dict[str, Any]:
    return {"id": id_, "name": name}


def opened(lab: Lab) -> None:
    """Make both tables, each with one row that is admitted; one more event waits for the next run of courses."""
    for topic in (STUDENT, COURSE):
        lab.register(topic, lab.flat("Row", NAME))
        lab.land(topic, [event(1, "first")], name="first.parquet")
    lab.apply()
    lab.land(COURSE, [event(2, "second")], name="second.parquet")


@pytest.fixture
def shop(begun: Begun) -> Lab:
    return begun(opened)


COURSES = [row(1, "first"), row(2, "second")]


def applied(lab: Lab) -> Applied:
    """Apply everything; return what became of students, once courses were seen to go on."""
    found = {table.target.table: table for table in lab.apply().tables}
    assert (found["shop_course"].error, lab.rows("shop_course")) == (None, COURSES)
    return found["shop_student"]


def compacted(lab: Lab) -> Compacted:
    """Compact everything; return what became of students, once courses were seen to go on."""
    lab.now_ms += 1000
    found = {table.target.table: table for table in lab.compact().tables}
    assert (found["shop_course"].failure, lab.rows("shop_course")) == (None, COURSES)
    return found["shop_student"]


def students(lab: Lab) -> Rows:
    return lab.rows("shop_student")


def codes(table: Applied) -> list[str]:
    return [d.code for d in table.diagnostics if d.severity is not Severity.INFO]


def told(table: Applied, code: str, *words: str) -> None:
    """Assert that exactly this is told, with these words and with what to do about it."""
    assert codes(table) == [code], table.diagnostics
    (found,) = (d for d in table.diagnostics if d.code == code)
    assert [word for word in words if word not in found.message] == [], found.message
    assert found.fix


def blamed(error: SchemasyncError | None, kind: type[SchemasyncError], *words: str) -> None:
    """Assert that this is the error, with these words and with what to do about it."""
    assert type(error) is kind, error
    assert [word for word in words if word not in str(error)] == [], str(error)


def age(lab: Lab, path: Path, *, seconds: int) -> None:
    """Make a file look as if it was last written that long ago, by the lab's clock."""
    moment = lab.now_ms / 1000 - seconds
    os.utime(path, (moment, moment))


def increments(lab: Lab) -> Path:
    return lab.root / "lake" / STUDENT / "incremental" / "increment_2026112000"


def sole_file(lab: Lab, kind: str) -> Path:
    (found,) = (lab.root / "lake" / STUDENT / kind).rglob("*.parquet")
    return found


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lengthened(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"1")


class TestFiles:
    def test_a_file_of_garbage_holds_its_table_until_it_is_moved_away(self, shop: Lab) -> None:
        shop.land(STUDENT, [event(2, "good")], name="good.parquet")
        bad = increments(shop) / "bad.parquet"
        bad.write_bytes(b"no Parquet at all " * 50)
        found = applied(shop)
        told(found, "SS301", "shop.student/incremental/increment_2026112000/bad.parquet")
        assert (found.held, students(shop)) == (True, [row(1, "first")])
        bad.rename(shop.root / "bad.parquet")
        assert (codes(applied(shop)), students(shop)) == ([], [row(1, "first"), row(2, "good")])

    def test_a_file_that_broke_off_long_ago_holds_its_table_until_it_is_whole(self, shop: Lab) -> None:
        path = shop.land(STUDENT, [event(2, "whole")], name="second.parquet")
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        age(shop, path, seconds=3600)
        found = applied(shop)
        told(found, "SS301", "second.parquet")
        assert (found.held, students(shop)) == (True, [row(1, "first")])
        path.write_bytes(whole)
        assert (codes(applied(shop)), students(shop)) == ([], [row(1, "first"), row(2, "whole")])

    def test_of_a_storage_that_fails_plan_and_status_tell_and_know_all_else(self, shop: Lab) -> None:
        shop.register(STUDENT, shop.flat("Row", NAME, ("age", ["null", "int"])))
        shop.land(STUDENT, [event(2, "second")], version=1)
        workspace = shop.workspace
        broken = OSError(errno.EIO, os.strerror(errno.EIO))

        def failing(target: TableTarget) -> Storage:
            files = ArrowFiles(Failing(repeat(broken)), f"{shop.root}/lake/{STUDENT}")
            return replace(workspace.storage(target), small=files)

        (planned,) = plan(replace(workspace, storage=failing), ["shop_student"]).tables
        (stands,) = status(replace(workspace, storage=failing), ["shop_student"]).tables
        assert "add_columns" in [step.kind for step in planned.steps]
        errors = [[d.code for d in t.diagnostics if d.severity is Severity.ERROR] for t in (planned, stands)]
        assert errors == [["SS301"], ["SS301", "SS216"]]

    @pytest.mark.parametrize("part", [0, 0.5], ids=["empty", "half"])
    def test_a_file_that_is_still_being_written_is_tried_again_and_holds_nothing(self, shop: Lab, part: float) -> None:
        shop.land(STUDENT, [event(2, "whole")], name="a.parquet")
        path = shop.land(STUDENT, [event(3, "slow")], name="b.parquet")
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * part)])
        age(shop, path, seconds=5)
        found = applied(shop)
        assert [d.code for d in found.diagnostics] == ["SS305"]
        assert (found.held, students(shop)) == (False, [row(1, "first"), row(2, "whole")])
        path.write_bytes(whole)
        assert (codes(applied(shop)), students(shop)) == ([], [row(1, "first"), row(2, "whole"), row(3, "slow")])

    @pytest.mark.parametrize("moment", ["listed", "looked at"])
    @pytest.mark.parametrize("way", ["in place", "renamed"])
    def test_a_file_that_changes_while_it_is_admitted_is_shown_once_however_it_changes(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch, moment: str, way: str
    ) -> None:
        """Without keys one that is admitted with the size of another is admitted again at the next look."""
        lab.settings = {"tables": [{"subject": f"{STUDENT}-value", "insert_only": True}]}
        lab.register(STUDENT, lab.flat("Row", NAME))
        path = lab.land(STUDENT, [event(1, "one")], name="a.parquet")
        other = lab.land(STUDENT, [event(2, "two"), event(3, "three")], name="b.parquet")
        beginning, whole = path.read_bytes(), other.read_bytes()
        other.unlink()

        def change() -> None:
            if way == "renamed":
                other.write_bytes(whole)
                other.rename(path)
            else:
                path.write_bytes(whole)

        def before(step: str, change: Callable[[], None]) -> None:
            real = getattr(admitting, step)

            def changed(*arguments: Any) -> Any:
                monkeypatch.setattr(admitting, step, real)
                change()
                return real(*arguments)

            monkeypatch.setattr(admitting, step, changed)

        assert len(whole) > len(beginning)
        before({"listed": "look_at", "looked at": "reader_for"}[moment], change)
        (first,) = lab.apply().tables
        shown = [row["name"] for row in lab.rows("shop_student")] if first.error is None else []
        assert ([d.code for d in first.diagnostics], first.held, shown) == (["SS305"], False, [])
        again = [lab.apply().tables[0] for _ in range(2)]
        assert [d.code for table in again for d in table.diagnostics] == []
        assert sorted(row["name"] for row in lab.rows("shop_student")) == ["three", "two"]

    @pytest.mark.parametrize("kind", ["delta", "base"])
    @pytest.mark.parametrize(
        ("harm", "trouble"),
        [(Path.unlink, "is missing"), (shortened, "was changed"), (lengthened, "was changed")],
        ids=["missing", "a byte short", "a byte long"],
    )
    def test_a_missing_or_changed_file_of_the_table_stops_its_compaction_until_it_is_back(
        self, shop: Lab, kind: str, harm: Callable[[Path], object], trouble: str
    ) -> None:
        if kind == "base":
            compacted(shop)
            shutil.rmtree(shop.root / "lake" / STUDENT / "delta")
        shop.land(STUDENT, [event(2, "later")], name="second.parquet")
        path = sole_file(shop, kind)
        whole = path.read_bytes()
        harm(path)
        found = compacted(shop)
        blamed(found.failure, DataError, str(path), f"a file of the table {trouble}", "Restore it")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(whole)
        assert (compacted(shop).failure, students(shop)) == (None, [row(1, "first"), row(2, "later")])

    @pytest.mark.parametrize("limit", ["256MB", "0"], ids=["in this process", "in tasks"])
    def test_a_file_of_the_table_that_cannot_be_read_stops_its_compaction_and_nothing_of_that_stays(
        self, shop: Lab, limit: str
    ) -> None:
        shop.settings = {"defaults": {"compaction": {"arrow_limit": limit}}}
        compacted(shop)
        shop.land(STUDENT, [event(2, "later")], name="second.parquet")
        path = sole_file(shop, "base")
        whole = path.read_bytes()
        footer = 8 + int.from_bytes(whole[-8:-4], "little")
        path.write_bytes(whole[:4] + bytes(len(whole) - 4 - footer) + whole[-footer:])
        found = compacted(shop)
        blamed(found.failure, DataError, f"lake/{STUDENT}: a file of the table cannot be read", "Run again")
        runs = (shop.root / "lake" / STUDENT / "base").glob("*/*")
        assert [run.parent.name for run in runs] == ["g=000001"]
        path.write_bytes(whole)
        assert (compacted(shop).failure, students(shop)) == (None, [row(1, "first"), row(2, "later")])

    @pytest.mark.parametrize("limit", ["256MB", "0"], ids=["in this process", "in tasks"])
    def test_a_delta_that_may_not_be_published_does_not_stay(self, shop: Lab, limit: str) -> None:
        shop.settings = {"defaults": {"compaction": {"arrow_limit": limit}}}
        shop.land(STUDENT, [event(2, "later")], name="second.parquet")
        refusal = StorageError("a file that was written would not be read as the table declares it")
        deltas = [*(shop.root / "lake" / STUDENT / "delta").rglob("*")]
        with patch.object(admitting, "checked_footer", side_effect=refusal):
            assert [t.error for t in shop.apply("shop_student").tables] == [refusal]
        assert [p for p in (shop.root / "lake" / STUDENT / "delta").rglob("*") if p.name[:2] != "g="] == [
            p for p in deltas if p.name[:2] != "g="
        ]
        assert (applied(shop).error, students(shop)) == (None, [row(1, "first"), row(2, "later")])

    def test_a_missing_manifest_is_named(self, shop: Lab) -> None:
        (path,) = (shop.root / "lake" / STUDENT / "_schemasync" / "generations").iterdir()
        path.rename(shop.root / "kept.json")
        blamed(applied(shop).error, DataError, str(path), "the table's manifest is missing: there is no such file")
        (shop.root / "kept.json").rename(path)
        assert (applied(shop).error, students(shop)) == (None, [row(1, "first")])

    def test_a_table_that_the_metastore_has_as_it_was_goes_on_where_the_advice_is_followed(self, shop: Lab) -> None:
        metastore = shop.workspace.metastore
        before = metastore.table(shop.database, "shop_student")
        states = shop.root / "lake" / STUDENT / "_schemasync" / "generations"
        known = {*states.iterdir()}
        shop.land(STUDENT, [event(2, "later")], name="second.parquet")
        applied(shop)
        (missing,) = {*states.iterdir()} - known
        shop.land(STUDENT, [event(3, "last")], name="third.parquet")
        compacted(shop)
        missing.unlink()
        now, rows = metastore.table(shop.database, "shop_student"), students(shop)
        assert before is not None
        assert now is not None
        assert metastore.swap_properties(
            shop.database, "shop_student", key=STATE, expected=now.properties[STATE], changes=before.properties
        )
        error = str(applied(shop).error)
        (advice,) = re.findall(r"ALTER TABLE .*\)", error)
        shop.session.sql(advice)
        assert (applied(shop).error, students(shop)) == (None, rows)

    def test_a_manifest_of_a_newer_format_is_refused_and_one_of_an_older_format_read(self, shop: Lab) -> None:
        states = shop.root / "lake" / STUDENT / "_schemasync" / "generations"
        (path,) = states.iterdir()
        written = json.loads(path.read_text())
        path.write_text(json.dumps(written | {"format": FORMAT + 1, "unheard_of": 1}))
        blamed(applied(shop).error, DataError, str(path), "newer schemasync", "Upgrade schemasync")
        older = [{k: v for k, v in segment.items() if k != "key_range"} for segment in written["segments"]]
        path.write_text(json.dumps(written | {"format": 5, "segments": older}))
        shop.land(STUDENT, [event(2, "later")], name="second.parquet")
        assert (applied(shop).error, students(shop)) == (None, [row(1, "first"), row(2, "later")])
        (following,) = (json.loads(p.read_text()) for p in states.iterdir() if p != path)
        # What an older version cannot read in it is refused by it, too.
        assert following["format"] == FORMAT
        assert [s["key_range"] for s in following["segments"]] == [None, [2, 2]]

    def test_a_file_that_fits_no_version_stays_where_it_is_while_others_are_admitted(self, shop: Lab) -> None:
        shop.land(STUDENT, [event(2, "good")], name="good.parquet")
        bad = increments(shop) / "bad.parquet"
        pq.write_table(pa.table({"id": [3], "colour": ["red"]}), bad)
        found = applied(shop)
        told(found, "SS302", "bad.parquet", "fit no version")
        assert (found.held, students(shop), bad.exists()) == (True, [row(1, "first"), row(2, "good")], True)
        bad.unlink()
        assert (applied(shop).held, students(shop)) == (False, [row(1, "first"), row(2, "good")])

    @pytest.mark.parametrize("name", ["_second.parquet", ".second.parquet"])
    def test_a_file_of_a_hidden_name_is_not_landed_yet(self, shop: Lab, name: str) -> None:
        hidden = shop.land(STUDENT, [event(2, "hidden")], name=name)
        shop.land(STUDENT, [event(3, "good")], name="third.parquet")
        found = applied(shop)
        assert found.admitted is not None
        assert (codes(found), found.admitted.files, students(shop)) == ([], 1, [row(1, "first"), row(3, "good")])
        hidden.rename(hidden.with_name("second.parquet"))
        assert (codes(applied(shop)), len(students(shop))) == ([], 3)

    def test_a_file_of_a_schema_that_is_not_registered_is_admitted_once_it_is(self, shop: Lab) -> None:
        schema = shop.flat("Row", NAME, ("email", ["null", "string"]))
        shop.register(STUDENT, schema)
        shop.land(STUDENT, [event(2, "early") | {"email": "e@x.org"}], version=2)
        shop.registry.delete(f"{STUDENT}-value", 2)
        found = applied(shop)
        told(found, "SS302", "no version of the subject")
        assert students(shop) == [row(1, "first")]
        shop.register(STUDENT, schema)
        assert codes(applied(shop)) == []
        assert students(shop) == [row(1, "first") | {"email": None}, row(2, "early") | {"email": "e@x.org"}]

    def test_a_file_that_could_mean_two_things_is_not_guessed(self, shop: Lab) -> None:
        for number, unit in enumerate(("Timestamp", "MicroTimestamp"), start=1):
            at = {"type": "long", "connect.name": f"io.debezium.time.{unit}"}
            fields = [
                {"name": "id", "type": "long"},
                {"name": "at", "type": ["null", at]},
                {"name": "op", "type": "string"},
                {"name": "ts_ms", "type": "long"},
            ]
            assert shop.register("shop.shift", {"type": "record", "name": "Shift", "fields": fields}) == number
            if number == 1:
                shop.apply("shop_shift")
        event_ = {"id": 1, "at": 1_790_000_000_000, "op": "c", "ts_ms": 1}
        bad = shop.land("shop.shift", [event_], version=1, footer=False)
        (found,) = shop.apply("shop_shift").tables
        assert codes(found) == ["SS121", "SS302"]
        assert "versions 1, 2, which give the values different meanings" in found.diagnostics[-1].message
        bad.unlink()
        shop.land("shop.shift", [event_], version=1)
        shop.apply("shop_shift")
        assert [r["at"].isoformat() for r in shop.rows("shop_shift")] == ["2026-09-21T14:13:20+00:00"]

    @pytest.mark.parametrize(
        ("events", "words"),
        [
            ([event(2, "good"), event(3, "x", op="t")], ("the operation 't'", "row 2")),
            ([event(2, "good"), event(3, "x", op="upsert?")], ("the operation 'upsert?'", "row 2")),
        ],
        ids=["truncate", "unknown"],
    )
    def test_an_operation_that_cannot_be_applied_is_named_with_its_row(
        self, shop: Lab, events: Rows, words: tuple[str, ...]
    ) -> None:
        bad = shop.land(STUDENT, events, name="bad.parquet")
        shop.land(STUDENT, [event(4, "other")], name="good.parquet")
        found = applied(shop)
        told(found, "SS303", "increment_2026112000/bad.parquet", *words)
        # As other findings name a file; what to do is said once.
        assert found.diagnostics[0].message.startswith(f"file://{shop.root}/lake/")
        assert "the file away" not in found.diagnostics[0].message
        assert (found.held, students(shop)) == (True, [row(1, "first")])
        bad.unlink()
        assert (codes(applied(shop)), students(shop)) == ([], [row(1, "first"), row(4, "other")])

    def test_an_event_without_a_key_is_named_with_its_row(self, shop: Lab) -> None:
        schema = shop.flat("Row", NAME)
        schema["fields"][0]["type"] = ["null", "long"]
        shop.register(STUDENT, schema)
        bad = shop.land(STUDENT, [event(2, "good"), event(None, "nobody")], name="bad.parquet")
        found = applied(shop)
        told(found, "SS303", "bad.parquet", "no value for the key column id", "row 2")
        assert students(shop) == [row(1, "first")]
        bad.unlink()
        shop.land(STUDENT, [event(2, "good")], name="good.parquet")
        assert (codes(applied(shop)), students(shop)) == ([], [row(1, "first"), row(2, "good")])


class TestTables:
    def test_a_key_column_that_the_value_lacks_makes_no_table(self, shop: Lab) -> None:
        shop.register("shop.shift", shop.flat("Shift", NAME), key=("code",))
        shop.land("shop.shift", [event(1, "early")])
        found = {t.target.table: t for t in shop.apply().tables}
        told(found["shop_shift"], "SS402", "key column code is not in the value", "id, name")
        assert (found["shop_shift"].held, shop.rows("shop_course")) == (True, COURSES)
        shop.settings = {"tables": [{"subject": "shop.shift-value", "keys": ["id"]}, {"subject": ".*-value"}]}
        shop.apply("shop_shift")
        assert shop.rows("shop_shift") == [row(1, "early")]

    def test_a_key_column_that_is_dropped_holds_the_table_also_when_it_comes_back(self, shop: Lab) -> None:
        schema = shop.flat("Row", NAME)
        del schema["fields"][0]
        shop.register(STUDENT, schema)
        shop.land(STUDENT, [event(2, "older version")], version=1)
        found = applied(shop)
        old_rows = [row(1, "first"), row(2, "older version")]
        assert (found.held, "SS402" in codes(found), students(shop)) == (True, True, old_rows)
        shop.register(STUDENT, shop.flat("Row", NAME, ("email", ["null", "string"])))
        found = applied(shop)
        assert (found.held, "SS122" in codes(found), students(shop)) == (True, True, old_rows)
        shop.registry.delete(f"{STUDENT}-value", 2)
        assert (applied(shop).held, [r["id"] for r in students(shop)]) == (False, [1, 2])

    def test_an_external_table_that_is_not_ours_is_taken_over_only_when_told_to(self, shop: Lab) -> None:
        self.make_foreign(shop, "EXTERNAL")
        found = {t.target.table: t for t in shop.apply().tables}
        told(found["shop_shift"], "SS201", "shop_shift exists and is not schemasync's")
        assert (self.foreign_rows(shop), shop.rows("shop_course")) == ([7], COURSES)
        shop.settings = {"tables": [{"subject": "shop.shift-value", "adopt": True}]}
        shop.apply()
        assert (shop.rows("shop_shift"), self.foreign_files(shop)) == ([row(1, "early")], 1)

    def test_a_managed_table_is_never_taken_over(self, shop: Lab) -> None:
        self.make_foreign(shop, "")
        shop.settings = {"tables": [{"subject": "shop.shift-value", "adopt": True}, {"subject": ".*-value"}]}
        found = {t.target.table: t for t in shop.apply().tables}
        told(found["shop_shift"], "SS201", "taking it over would delete its data")
        assert (self.foreign_rows(shop), shop.rows("shop_course")) == ([7], COURSES)
        shop.workspace.sql.execute(f"DROP TABLE {shop.database}.shop_shift")
        shop.apply("shop_shift")
        assert shop.rows("shop_shift") == [row(1, "early")]

    def test_a_view_that_is_not_ours_is_not_replaced(self, shop: Lab) -> None:
        self.land_shift(shop)
        shop.workspace.sql.execute(f"CREATE VIEW {shop.database}.shop_shift_view AS SELECT 7 AS mine")
        found = {t.target.table: t for t in shop.apply().tables}
        told(found["shop_shift"], "SS201", "shop_shift_view")
        assert (shop.rows("shop_shift"), shop.rows("shop_course")) == ([{"mine": 7}], COURSES)
        shop.settings = {"tables": [{"subject": "shop.shift-value", "names": {"view": "shifts"}}]}
        shop.apply()
        found_rows = shop.session.table(f"{shop.database}.shifts").collect()
        assert (found_rows, shop.rows("shop_shift")) == ([(1, "early")], [{"mine": 7}])

    def test_two_new_subjects_that_claim_one_table_are_both_left_alone(self, shop: Lab) -> None:
        for topic in ("shop-shift", "shop.shift"):
            shop.register(topic, shop.flat("Row", NAME))
        result = shop.apply()
        (problem,) = result.problems
        assert [w for w in ("shop-shift-value", "shop.shift-value", "Give one of them") if w not in str(problem)] == []
        assert [t.target.table for t in result.tables] == ["shop_course", "shop_student"]

    def test_a_table_goes_on_when_a_new_subject_claims_its_name(self, shop: Lab) -> None:
        shop.register("shop-student", shop.flat("Row", NAME))
        shop.land("shop.student", [event(9, "late")])
        result = shop.apply()
        assert [t.target.subject for t in result.tables] == ["shop.course-value", "shop.student-value"]
        assert "shop.student-value, whose table is there, keeps it" in str(result.problems[0])
        assert shop.rows("shop_student")[-1] == {"id": 9, "name": "late"}
        shop.settings = {"tables": [{"subject": "shop-student-value", "table": "pupil"}, {"subject": ".*-value"}]}
        assert [t.target.table for t in shop.apply().tables] == ["pupil", "shop_course", "shop_student"]

    @staticmethod
    def land_shift(shop: Lab) -> None:
        shop.register("shop.shift", shop.flat("Shift", NAME))
        shop.land("shop.shift", [event(1, "early")])

    def make_foreign(self, shop: Lab, kind: str) -> None:
        self.land_shift(shop)
        name, place = f"{shop.database}.shop_shift", f"LOCATION 'file://{shop.root}/foreign'" if kind else ""
        shop.workspace.sql.execute(f"CREATE {kind} TABLE {name} (mine INT) STORED AS PARQUET {place}")
        shop.session.sql("SELECT 7").write.insertInto(name)

    @staticmethod
    def foreign_rows(shop: Lab) -> list[int]:
        return [r["mine"] for r in shop.session.table(f"{shop.database}.shop_shift").collect()]

    @staticmethod
    def foreign_files(shop: Lab) -> int:
        return len([p for p in (shop.root / "foreign").iterdir() if not p.name.startswith(("_", "."))])


class TestRegistry:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('{"type": "record", "name": "Row", "fields": [', ("shop.student-value version 2",)),
            (
                json.dumps({"type": "record", "name": "Row", "fields": [{"name": "parent", "type": ["null", "Row"]}]}),
                ("shop.student-value version 2", "recursive"),
            ),
        ],
        ids=["not JSON", "recursive"],
    )
    def test_a_broken_newest_schema_holds_the_table_at_the_old_version(
        self, shop: Lab, text: str, words: tuple[str, ...]
    ) -> None:
        shop.registry.register(f"{STUDENT}-value", text)
        shop.land(STUDENT, [event(2, "goes on")], version=1)
        found = applied(shop)
        told(found, "SS406", *words)
        assert (found.held, students(shop)) == (True, [row(1, "first"), row(2, "goes on")])
        shop.register(STUDENT, shop.flat("Row", NAME, ("email", ["null", "string"])))
        assert (applied(shop).held, [r["id"] for r in students(shop)]) == (False, [1, 2])

    def test_versions_that_are_dates_do_not_fill_the_memory(self, shop: Lab) -> None:
        """There may be millions of numbers between two of them."""
        text = json.dumps(shop.flat("Row", NAME, ("email", ["null", "string"])))
        shop.registry.register(f"{STUDENT}-value", text, version=3_000_000)
        tracemalloc.start()
        try:
            found = applied(shop)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (found.held, most < 50_000_000) == (False, True)

    def test_a_subject_that_is_deleted_drops_nothing(self, shop: Lab) -> None:
        shop.settings = {"tables": [{"subject": f"{STUDENT}-value"}, {"subject": ".*-value"}]}
        text = shop.registry.schema(f"{STUDENT}-value", 1).text
        shop.registry.delete(f"{STUDENT}-value")
        found = applied(shop)
        told(found, "SS405", "the registry has no versions of shop.student-value")
        assert students(shop) == [row(1, "first")]
        shop.registry.register(f"{STUDENT}-value", text)
        shop.land(STUDENT, [event(2, "again")])
        assert (codes(applied(shop)), students(shop)) == ([], [row(1, "first"), row(2, "again")])

    def test_a_subject_that_is_made_anew_is_another_history(self, shop: Lab) -> None:
        old = shop.registry.schema(f"{STUDENT}-value", 1).text
        shop.registry.delete(f"{STUDENT}-value")
        shop.register(STUDENT, shop.flat("Row", ("nick", ["null", "string"])))
        found = applied(shop)
        told(found, "SS404", "version 1", "another content")
        assert "to go on with" not in found.diagnostics[0].fix
        assert (found.held, students(shop)) == (True, [row(1, "first")])
        shop.registry.delete(f"{STUDENT}-value")
        shop.registry.register(f"{STUDENT}-value", old)
        assert (codes(applied(shop)), students(shop)) == ([], [row(1, "first")])

    def test_a_type_that_only_kept_versions_refer_to_may_be_gone(self, shop: Lab) -> None:
        colour = {"type": "enum", "name": "Colour", "symbols": ["RED"]}
        shop.registry.register("colour", json.dumps(colour))
        text = json.dumps(shop.flat("Row", NAME, ("colour", ["null", "Colour"])))
        shop.registry.register(f"{STUDENT}-value", text, references=[("Colour", "colour", 1)])
        assert codes(applied(shop)) == []
        shop.registry.delete("colour")
        assert codes(applied(shop)) == []
        shop.register(STUDENT, shop.flat("Row", NAME, ("age", ["null", "int"])))
        assert codes(applied(shop)) == []
        assert students(shop) == [row(1, "first") | {"age": None}]

    def test_a_version_that_an_attempt_kept_and_never_applied_may_be_corrected(self, shop: Lab) -> None:
        shop.register(STUDENT, shop.flat("Row", ("age", "int")))
        self.kept_and_taken_back(shop)
        assert codes(applied(shop)) == []
        shop.register(STUDENT, shop.flat("Row", NAME, ("email", ["null", "string"])))
        assert codes(applied(shop)) == []
        assert students(shop) == [row(1, "first") | {"email": None}]
        # What was applied in its place is kept from then on.
        shop.registry.register(f"{STUDENT}-value", shop.registry.schema(f"{STUDENT}-value", 1).text, version=2)
        told(applied(shop), "SS404", "version 2", "another content")

    def test_a_version_that_an_attempt_kept_and_never_applied_may_be_corrected_by_the_next(self, shop: Lab) -> None:
        shop.register(STUDENT, shop.flat("Row", NAME, ("age", ["null", "int"])))
        self.kept_and_taken_back(shop)
        corrected = json.dumps(shop.flat("Row", NAME, ("age", ["null", "string"])))
        shop.registry.register(f"{STUDENT}-value", corrected, version=3)
        assert codes(applied(shop)) == []
        assert codes(applied(shop)) == []
        assert students(shop) == [row(1, "first") | {"age": None}]

    @staticmethod
    def kept_and_taken_back(shop: Lab) -> None:
        """Let an attempt at version 2 fail once it has kept that, and delete it in the registry."""
        with pytest.raises(KilledError):
            apply(mortal(shop.workspace, Fuse(1)), ["shop_student"])
        kept = sorted(path.name for path in (shop.root / "lake" / STUDENT / SCHEMAS).iterdir())
        assert kept == ["000001.json", "000002.json"]
        shop.registry.delete(f"{STUDENT}-value", 2)

    def test_files_from_before_what_is_to_order_the_table_go_on_being_admitted(self, shop: Lab) -> None:
        shop.register(STUDENT, shop.flat("Row", NAME, ("kafka_offset", ["null", "long"])))
        shop.settings = {
            "tables": [{"subject": f"{STUDENT}-value", "sequence_by": ["kafka_offset"]}, {"subject": ".*-value"}]
        }
        shop.land(STUDENT, [event(2, "goes on")], version=1)
        found = applied(shop)
        told(found, "SS123", "ts_ms", "kafka_offset")
        assert (found.held, students(shop)) == (True, [row(1, "first"), row(2, "goes on")])

    def test_a_version_that_goes_backwards_is_another_history(self, shop: Lab) -> None:
        first = shop.registry.schema(f"{STUDENT}-value", 1).text
        shop.register(STUDENT, shop.flat("Row", NAME, ("email", ["null", "string"])))
        applied(shop)
        second = shop.registry.schema(f"{STUDENT}-value", 2).text
        shop.registry.delete(f"{STUDENT}-value")
        shop.registry.register(f"{STUDENT}-value", first)
        found = applied(shop)
        told(found, "SS404", "was at version 2", "newest is 1")
        assert "restore version 2, or let the schema to go on with be a version above 2" in found.diagnostics[0].fix
        assert (found.held, students(shop)) == (True, [row(1, "first") | {"email": None}])
        shop.registry.register(f"{STUDENT}-value", second)
        assert codes(applied(shop)) == []


class TestStorage:
    def test_a_location_that_cannot_be_written_makes_no_table(self, shop: Lab) -> None:
        shop.register("shop.shift", shop.flat("Shift", NAME))
        blocker = shop.root / "lake" / "shop.shift"
        # Below a regular file nobody can make a directory, not even root.
        blocker.write_text("in the way")
        found = {t.target.table: t for t in shop.apply().tables}
        blamed(found["shop_shift"].error, StorageError, str(blocker))
        table = shop.workspace.metastore.table(shop.database, "shop_shift")
        assert (table, shop.rows("shop_course")) == (None, COURSES)
        blocker.unlink()
        shop.land("shop.shift", [event(1, "early")])
        shop.apply("shop_shift")
        assert shop.rows("shop_shift") == [row(1, "early")]

    def test_a_disk_that_is_full_during_admission_makes_nothing_visible(self, shop: Lab) -> None:
        applied(shop)
        shop.land(STUDENT, bulky(), name="bulky.parquet")
        with full_disk(os.getpid()):
            found = applied(shop)
        blamed(found.error, StorageError, "File too large")
        assert students(shop) == [row(1, "first")]
        assert (applied(shop).error, len(students(shop))) == (None, 1 + BULK)

    @pytest.mark.parametrize("kernel", ["arrow", "spark"])
    def test_a_disk_that_is_full_during_compaction_leaves_the_old_state_readable(self, shop: Lab, kernel: str) -> None:
        folds_with(shop, kernel)
        shop.land(STUDENT, bulky(), name="bulky.parquet")
        applied(shop)
        jvm = shop.session._jvm
        assert jvm is not None
        writer = jvm.java.lang.ProcessHandle.current().pid() if kernel == "spark" else os.getpid()
        with full_disk(writer):
            found = compacted(shop)
        blamed(found.failure, StorageError, "File too large", "the old state is in force")
        tables = shop.workspace.metastore.names(shop.database, "shop_student*")
        assert (tables, len(students(shop))) == (
            ("shop_student", "shop_student_history", "shop_student_view"),
            1 + BULK,
        )
        again = compacted(shop)
        assert (again.failure, again.generation, len(students(shop))) == (None, 1, 1 + BULK)


def folds_with(shop: Lab, kernel: str) -> None:
    shop.settings = shop.settings | {"defaults": shop.settings.get("defaults", {}) | {"compaction": {"kernel": kernel}}}


BULK = 40_000


def bulky() -> Rows:
    """Return events whose files have about 8 MB, whatever the compression."""
    source = random.Random(7)  # noqa: S311 - any bytes will do
    return [event(n, source.randbytes(100).hex()) for n in range(100, 100 + BULK)]


@contextmanager
def full_disk(process: int) -> Iterator[None]:
    """Let no file of a process grow beyond 2 MB: every longer write fails, as on a full disk."""
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (2_000_000, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)


class TestPerRunTables:
    @pytest.mark.parametrize("name", ["shop_student_base", "shop_student_incremental_2026112000"])
    def test_a_table_that_stands_where_a_compaction_needs_one_is_not_dropped(self, shop: Lab, name: str) -> None:
        folds_with(shop, "spark")
        shop.workspace.sql.execute(f"CREATE TABLE {shop.database}.{name} (mine INT) STORED AS PARQUET")
        found = compacted(shop)
        blamed(found.failure, OwnershipError, name, "Rename it")
        assert shop.workspace.metastore.table(shop.database, name) is not None
        shop.workspace.sql.execute(f"DROP TABLE {shop.database}.{name}")
        assert (compacted(shop).failure, students(shop)) == (None, [row(1, "first")])

    def test_a_table_of_such_a_name_is_in_nobodys_way_where_arrow_folds_and_cleans_up(self, shop: Lab) -> None:
        name = "shop_student_base"
        shop.workspace.sql.execute(f"CREATE TABLE {shop.database}.{name} (mine INT) STORED AS PARQUET")
        found = [compacted(shop).failure]
        shop.now_ms += 2 * HOUR
        found.append(compacted(shop).failure)
        assert (found, list(increments(shop).glob("*")), students(shop)) == ([None, None], [], [row(1, "first")])
        assert shop.workspace.metastore.table(shop.database, name) is not None

    def test_a_table_that_only_looks_like_one_of_an_hour_is_in_nobodys_way(self, shop: Lab) -> None:
        folds_with(shop, "spark")
        name = "shop_student_incremental_notes"
        shop.workspace.sql.execute(f"CREATE TABLE {shop.database}.{name} (mine INT) STORED AS PARQUET")
        assert (compacted(shop).failure, students(shop)) == (None, [row(1, "first")])
        assert shop.workspace.metastore.table(shop.database, name) is not None
