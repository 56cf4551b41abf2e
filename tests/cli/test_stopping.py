"""Signals, and answers that nobody can take: the program ends as it promises, and says no more than it has to."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from schemasync.app import watching
from schemasync.app.opening import open_session
from schemasync.app.watched import WatchResult
from schemasync.cli.context import Call, Opened, World
from schemasync.cli.program import run
from schemasync.cli.signals import stopping
from schemasync.core.ports import Notifier
from schemasync.io.spark_session import held
from tests.app.still import ID
from tests.cli.bench import Bench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def configured(bench: Bench) -> Bench:
    bench.write("schemasync.yaml", "registry: {url: 'file:.'}\n")
    return bench


def test_sigterm_ends_a_watcher_that_waits_for_the_metastore_before_spark_is_started(configured: Bench) -> None:
    @contextmanager
    def terminated(*given: Any, sleep: Callable[[float], object], **more: Any) -> Iterator[SparkSession]:
        def told(seconds: float) -> object:
            os.kill(os.getpid(), signal.SIGTERM)
            return sleep(seconds)

        with open_session(*given, sleep=told, **more) as session:
            yield session

    configured.open_session = terminated
    with held(configured.root / ".schemasync", purpose="compact"):
        answer = configured("--wait-timeout", "3", "--json", "watch")
    assert (answer.code, answer.json["ticks"], "starting Spark" in answer.err) == (0, 0, False)


def test_an_address_that_is_taken_is_told_before_spark_is_started(configured: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "{}:{}".format(*taken.getsockname())
        configured.write("schemasync.yaml", f"registry: {{url: 'file:.'}}\nserver: {{listen: '{address}'}}\n")
        answer = configured("watch")
    assert (answer.code, f"cannot listen on {address}" in answer.err, "Spark" in answer.err) == (2, True, False)


def test_a_watcher_that_waited_in_vain_for_the_metastore_has_failed(configured: Bench) -> None:
    configured.open_session = open_session
    with held(configured.root / ".schemasync", purpose="compact"):
        answer = configured("watch")
    assert (answer.code, "(compact)" in answer.err) == (1, True)


class Interrupted:
    """A session that is interrupted wherever it is used first."""

    def __getattr__(self, name: str) -> object:
        raise KeyboardInterrupt


@pytest.mark.parametrize("again", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_while_spark_is_stopped_changes_nothing(configured: Bench, again: signal.Signals) -> None:
    stopped = []

    @contextmanager
    def opener(*_: object, **__: object) -> Iterator[SparkSession]:
        yield cast(Any, Interrupted())
        os.kill(os.getpid(), again)
        stopped.append(again)

    configured.open_session = opener
    answer = configured("plan")
    assert (answer.code, answer.err.strip(), stopped) == (130, "error: interrupted", [again])


@pytest.mark.parametrize(
    ("command", "first"),
    [
        (("ddl", "s-value"), []),
        (("ddl", "s-value", "--json"), []),
        (("--json", "nosuch"), ["error: No such command 'nosuch'. Try schemasync --help."]),
    ],
)
def test_an_answer_for_which_there_is_no_space_is_one_error(
    configured: Bench, command: tuple[str, ...], first: list[str]
) -> None:
    configured.write("s-value.avsc", json.dumps({"type": "record", "name": "S", "fields": [ID]}))
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, "-m", "schemasync", *command]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            program, cwd=configured.root, env=environ, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    errors = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert (done.returncode, errors) == (1, [*first, "error: the answer cannot be written: No space left on device"])


def test_a_watcher_whose_stdout_is_closed_writes_no_lines(configured: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Sequence[Notifier]] = []

    def watched(*_: object, notifiers: Sequence[Notifier], **__: object) -> WatchResult:
        given.append(notifiers)
        return WatchResult(tables=(), ticks=1)

    monkeypatch.setattr(watching, "watch", watched)
    monkeypatch.setattr(Call, "workspace", lambda *_: None)
    for out in (io.StringIO(), None):
        run(["watch"], Call(world=World(cwd=configured.root), opened=Opened(), out=cast(Any, out)))
    assert [len(notifiers) for notifiers in given] == [1, 0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_that_ask_for_an_end_set_stop_and_get_their_handlers_back(number: signal.Signals) -> None:
    stop, before = threading.Event(), signal.getsignal(number)
    with stopping(stop):
        os.kill(os.getpid(), number)
    assert (stop.is_set(), signal.getsignal(number)) == (True, before)


def test_under_nohup_a_terminal_that_is_closed_ends_nothing() -> None:
    stop, before = threading.Event(), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping(stop):
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not stop.is_set()


@pytest.mark.parametrize("late", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_that_comes_when_all_is_done_changes_nothing(late: str) -> None:
    code = (
        "import atexit, os, signal; from schemasync.cli import main;"
        f"atexit.register(lambda: os.kill(os.getpid(), signal.{late})); main()"
    )
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
