"""A first configuration: it loads as it stands, names what the registry holds, and overwrites nothing."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import pytest

from schemasync.app.opening import open_registry
from schemasync.app.scaffolding import Scaffold, scaffold
from schemasync.core.mapping import map_subjects
from schemasync.errors import RegistryError, StorageError, UsageError
from schemasync.io.config_file import load_config
from tests.io.http_registry_server import RegistryServer


def made(directory: Path, registry: str | None = None, **environ: str) -> Scaffold:
    return scaffold(directory, registry=registry, environ=environ, open_registry=open_registry)


def test_the_configuration_loads_and_means_the_defaults(tmp_path: Path) -> None:
    loaded = load_config(made(tmp_path / "new").path, environ={}, cwd=tmp_path).config
    assert (loaded.registry.url, loaded.defaults.database, loaded.tables) == ("http://localhost:8081", "lake", ())
    assert loaded.defaults.location == f"file://{tmp_path}/new/lake/{{topic}}"


def test_every_example_in_the_comments_loads_too(tmp_path: Path) -> None:
    path = made(tmp_path).path
    lines = path.read_text().splitlines()
    examples = [line.replace("# ", "", 1) for line in lines if line.lstrip().startswith("# ") and _is_example(line)]
    path.write_text("registry: {url: 'http://r:1'}\n" + "\n".join(e for e in examples if not e.startswith(" ")))
    load_config(path, environ={}, cwd=tmp_path)


def _is_example(line: str) -> bool:
    return line.startswith(("# spark:", "# watch:", "# notify:", "# tables:"))


def test_what_the_registry_holds_becomes_tables(tmp_path: Path) -> None:
    with RegistryServer() as server:
        for subject in ("shop.student-value", "shop.student-key", "shop.audit-value", "__debezium-heartbeat.x-value"):
            server.add(subject, 1)
        found = made(tmp_path, server.url)
        loaded = load_config(found.path, environ={}, cwd=tmp_path).config
        mapping = map_subjects(open_registry(loaded).subjects(), loaded)
    tables = (("shop.audit-value", "shop_audit"), ("shop.student-value", "shop_student"))
    assert (found.tables, tuple((t.subject, t.table) for t in mapping.targets)) == (tables, tables)
    assert '# Left out, they hold no table\'s rows: "__debezium-heartbeat.x-value"' in found.path.read_text()


def test_a_registry_is_read_from_the_very_directory_whatever_its_name(tmp_path: Path) -> None:
    directory = tmp_path / "c#100%41"
    (directory / "shop.student-value").mkdir(parents=True)
    (directory / "shop.student-value" / "1.avsc").write_text('{"type": "record", "name": "R", "fields": []}')
    assert made(tmp_path / "project", f"file:{directory}").tables == (("shop.student-value", "shop_student"),)


def test_subjects_that_would_share_a_table_are_left_out_and_said_so(tmp_path: Path) -> None:
    with RegistryServer() as server:
        for subject in ("a.b-value", "a_b-value", "c-value"):
            server.add(subject, 1)
        found = made(tmp_path, server.url)
    assert found.tables == (("c-value", "c"),)
    (problem,) = found.problems
    assert problem.startswith("tables: lake.a_b is claimed 2 times")
    assert f"# Left out: {problem}\n" in found.path.read_text()


def test_what_is_left_out_is_said_also_where_nothing_is_left(tmp_path: Path) -> None:
    with RegistryServer() as server:
        server.add("dbhistory.bank-value", 1)
        found = made(tmp_path, server.url)
        load_config(found.path, environ={}, cwd=tmp_path)
    assert (found.tables, found.skipped) == ((), ("dbhistory.bank-value",))
    assert '# Left out, they hold no table\'s rows: "dbhistory.bank-value"\n' in found.path.read_text()


def test_a_registry_of_files_is_relative_to_the_new_file(tmp_path: Path) -> None:
    (tmp_path / "p/registry/s-value").mkdir(parents=True)
    (tmp_path / "p/registry/s-value/1.avsc").write_text('"string"')
    assert made(tmp_path / "p", "file:./registry").tables == (("s-value", "s"),)


def test_user_and_password_come_from_the_environment_and_are_not_written(tmp_path: Path) -> None:
    with RegistryServer() as server:
        server.authorization = "Basic dTpw"
        server.add("s-value", 1)
        environ = {"SCHEMASYNC_REGISTRY__AUTH__BASIC__USERNAME": "u", "SCHEMASYNC_REGISTRY__AUTH__BASIC__PASSWORD": "p"}
        found = made(tmp_path, server.url, **environ)
    assert found.tables == (("s-value", "s"),)


def test_a_registry_that_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    with RegistryServer() as server:
        server.authorization = "Basic dTpw"
        with pytest.raises(RegistryError):
            made(tmp_path / "lake/project", server.url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["", "localhost:8081", "ftp://x", "http://u:p@h", "${HOME}"])
def test_what_is_no_registry_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="--registry"):
        made(tmp_path, url)


def test_of_a_wrong_environment_the_variable_is_named_and_not_the_registry(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^environment variable SCHEMASYNC_METASTORE__URI: metastore: has a uri"):
        made(tmp_path, "file:.", SCHEMASYNC_METASTORE__URI="thrift://hms:9083")


def test_a_configuration_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "schemasync.yaml").write_text("mine")
    with pytest.raises(UsageError, match="is not overwritten"):
        made(tmp_path)
    assert (tmp_path / "schemasync.yaml").read_text() == "mine"


@pytest.mark.parametrize("registry", [None, "file:."])
def test_a_directory_that_cannot_be_made_is_one_error(tmp_path: Path, registry: str | None) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"the directory cannot be written: Not a directory\. Give this user"):
        made(tmp_path / "file" / "project", registry)


@pytest.mark.parametrize(("owner", "name"), [(Path, "exists"), (tempfile, "NamedTemporaryFile")])
def test_a_directory_that_this_user_may_not_use_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    """One that may not be looked into, one that may not be written; permissions do not bind root."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(owner, name, refused)
    with pytest.raises(StorageError) as raised:
        made(tmp_path, "file:.")
    assert (str(raised.value), raised.value.exit_code) == (
        f"{tmp_path}: the directory cannot be written: Permission denied. Give this user write permission there, or "
        "name another directory: schemasync init DIR.",
        1,
    )
