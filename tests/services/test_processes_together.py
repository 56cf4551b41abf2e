"""Two processes at the same table at once, which only a metastore that serves Thrift lets happen: one wins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.services.project import CONFIG, Project

pytestmark = [pytest.mark.services, pytest.mark.one_spark]


@pytest.fixture
def project(tmp_path: Path, hive_metastore: str) -> Project:
    served = json.dumps({"kind": "thrift", "uri": hive_metastore})
    made = Project(tmp_path, CONFIG.replace("{kind: embedded}", served).replace("lake\n", "processes\n"))
    made.register("name")
    return made


def test_of_two_compactions_at_once_one_wins_and_the_other_says_so(project: Project) -> None:
    for _ in range(2):
        project.land(10, ("name",))
        ended = project.at_once(2, "compact")
        assert 0 in {code for code, _ in ended}, ended
        lost = [text for code, text in ended if code]
        assert [text for text in lost if "another writer" not in text and "Plan again" not in text] == []
        assert [text for _, text in ended if "Traceback" in text] == []
    last = project.run("compact")
    assert (last.returncode, project.rows()) == (0, project.expected), last.stderr
