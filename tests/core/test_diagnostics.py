from __future__ import annotations

import re
from pathlib import Path

import pytest

import schemasync
from schemasync.core.diagnostics import (
    CODES,
    FILE_ERRORS,
    Code,
    Diagnostic,
    Severity,
    diagnose,
    names_held_file,
    refused,
)
from schemasync.errors import SchemaError, SettingError

SOURCES = [p.read_text() for p in Path(schemasync.__file__).parent.rglob("*.py") if p.name != "diagnostics.py"]


@pytest.mark.parametrize("code", CODES.values(), ids=str)
def test_every_code_says_what_it_means_and_errors_say_what_to_do(code: Code) -> None:
    assert re.fullmatch("SS[1-5][0-9]{2}", code.code)
    assert code.meaning.endswith(".")
    assert code.fix.endswith(".") or (not code.fix and code.severity is not Severity.ERROR)


@pytest.mark.parametrize("code", CODES.values(), ids=str)
def test_every_code_has_an_example_of_one_line(code: Code) -> None:
    assert re.fullmatch(r"[^\n]{10,120}[^\n.]", code.example)


def test_codes_are_listed_once_and_in_order() -> None:
    assert list(CODES) == sorted({c.code for c in CODES.values()})


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_used(code: str) -> None:
    assert any(f'"{code}"' in source for source in SOURCES)


def test_every_code_that_is_used_is_known() -> None:
    used = {code for source in SOURCES for code in re.findall(r'"(SS[0-9]{3})"', source)}
    assert used <= CODES.keys()


def test_files_wait_for_a_person_where_their_code_is_an_error() -> None:
    assert sorted(FILE_ERRORS) == ["SS301", "SS302", "SS303", "SS306"]
    assert [names_held_file([diagnose(code, "")]) for code in ("SS201", "SS302", "SS304")] == [False, True, False]


def test_a_diagnostic_takes_severity_and_advice_from_its_code() -> None:
    assert diagnose("SS402", "key column x is missing") == Diagnostic(
        code="SS402", severity=Severity.ERROR, message="key column x is missing", fix=CODES["SS402"].fix
    )


def test_better_advice_replaces_the_general_one() -> None:
    assert diagnose("SS402", "m", fix="Add it.").fix == "Add it."


def test_a_setting_that_does_not_fit_comes_with_the_advice_of_its_error_and_other_schemas_with_the_general_one() -> (
    None
):
    said = {"where": "student-value version 1", "why": "there is none", "fix": "Correct `envelope:`."}
    setting, schema = refused(SettingError("it is wrapped otherwise", **said)), refused(SchemaError("m", code="SS411"))
    assert (setting.code, setting.fix) == ("SS406", "Correct `envelope:`.")
    assert setting.message == "student-value version 1: it is wrapped otherwise: there is none"
    assert (schema.code, schema.message, schema.fix) == ("SS411", "m", CODES["SS411"].fix)
