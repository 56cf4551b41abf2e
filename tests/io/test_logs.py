"""What a log line looks like, which lines there are, and that no secret is in them."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemasync.io.logs import configure_logging, redact

pytestmark = pytest.mark.usefixtures("logging_restored")

logger = logging.getLogger("schemasync.test")


def record(message: str) -> logging.LogRecord:
    made = logging.LogRecord("schemasync.test", logging.INFO, "f.py", 1, message, (), None)
    made.created = 1_795_262_400.0015
    return made


def test_a_text_line_has_utc_time_level_logger_and_message() -> None:
    stream = io.StringIO()
    configure_logging("text", 1, stream)
    logger.handle(record("admitted 3 files"))
    assert stream.getvalue() == "2026-11-21T12:00:00.001Z INFO schemasync.test: admitted 3 files\n"


def test_a_text_line_is_one_line_whatever_names_have_in_them() -> None:
    stream = io.StringIO()
    configure_logging("text", 1, stream)
    logger.handle(record("subject a\n2026 ERROR x\x1b[31m größe\t1"))
    assert stream.getvalue().endswith("schemasync.test: subject a\\n2026 ERROR x\\x1b[31m größe\\t1\n")


def test_a_traceback_keeps_its_lines() -> None:
    stream = io.StringIO()
    configure_logging("text", 0, stream)
    try:
        raise ValueError("lost")
    except ValueError:
        logger.exception("it failed")
    lines = stream.getvalue().splitlines()
    assert (lines[1], lines[-1]) == ("Traceback (most recent call last):", "ValueError: lost")


def test_a_json_line_has_the_same_as_one_object_and_what_the_call_added() -> None:
    stream = io.StringIO()
    configure_logging("json", 1, stream)
    made = record("admitted 3 files")
    made.table = "lake.student"
    logger.handle(made)
    assert json.loads(stream.getvalue()) == {
        "timestamp": "2026-11-21T12:00:00.001Z",
        "level": "INFO",
        "logger": "schemasync.test",
        "message": "admitted 3 files",
        "table": "lake.student",
    }


@pytest.mark.parametrize(
    ("verbosity", "ours", "theirs"),
    [
        (-1, ["WARNING"], ["WARNING"]),
        (0, ["WARNING"], ["WARNING"]),
        (1, ["INFO", "WARNING"], ["WARNING"]),
        (2, ["DEBUG", "INFO", "WARNING"], ["INFO", "WARNING"]),
        (3, ["DEBUG", "INFO", "WARNING"], ["DEBUG", "INFO", "WARNING"]),
    ],
)
def test_each_v_shows_one_level_more_of_ours_and_later_of_the_libraries(
    verbosity: int, ours: list[str], theirs: list[str]
) -> None:
    stream = io.StringIO()
    configure_logging("text", verbosity, stream)
    for name in ("schemasync.test", "somelibrary"):
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            logging.getLogger(name).log(level, "m")
    lines = [line.split()[1:3] for line in stream.getvalue().splitlines()]
    assert lines == [[o, "schemasync.test:"] for o in ours] + [[t, "somelibrary:"] for t in theirs]


@pytest.mark.parametrize("name", ["py4j", "py4j.clientserver", "SQLQueryContextLogger", "DataFrameQueryContextLogger"])
def test_loggers_that_repeat_what_is_raised_anyway_are_silent(name: str) -> None:
    stream = io.StringIO()
    configure_logging("text", 3, stream)
    logging.getLogger(name).critical("noise")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("verbosity", "shown"), [(0, ["WARNING"]), (3, ["INFO", "WARNING"])])
def test_botocore_which_tells_of_answers_with_keys_in_them_is_never_heard_in_full(
    verbosity: int, shown: list[str]
) -> None:
    stream = io.StringIO()
    configure_logging("text", verbosity, stream)
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        logging.getLogger("botocore.parsers").log(level, "m")
    assert [line.split()[1] for line in stream.getvalue().splitlines()] == shown


def test_what_py4j_tells_of_calls_that_were_broken_off_is_not_told_again() -> None:
    stream = io.StringIO()
    configure_logging("text", 3, stream)
    for path in ("/lib/site-packages/py4j/java_gateway.py", "/lib/site-packages/other/py4j.py"):
        logging.getLogger().handle(
            logging.LogRecord("root", logging.ERROR, path, 1, "/".join(path.split("/")[-2:]), (), None)
        )
    assert [line.split(" ", 1)[1] for line in stream.getvalue().splitlines()] == ["ERROR root: other/py4j.py"]


def test_setting_up_twice_does_not_print_twice() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging("text", 1, first)
    configure_logging("text", 1, second)
    logger.info("once")
    assert (first.getvalue(), second.getvalue().count("once")) == ("", 1)


PYSPARK_PROGRAM = """
import sys
from schemasync.io.logs import configure_logging
{before}
configure_logging("text", 3, sys.stderr)
from pyspark.logger import PySparkLogger
PySparkLogger.getLogger("SQLQueryContextLogger").exception("boom", errorClass="X")
"""


@pytest.mark.parametrize(
    "before", ["", "from pyspark.logger import PySparkLogger as P; P.getLogger('SQLQueryContextLogger')"]
)
def test_pyspark_s_own_error_traces_are_silent_whoever_was_first(before: str) -> None:
    command = [sys.executable, "-c", PYSPARK_PROGRAM.format(before=before)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_traceback_is_redacted_too(log_format: str) -> None:
    stream = io.StringIO()
    configure_logging("json" if log_format == "json" else "text", 0, stream)
    try:
        raise ValueError("GET http://user:hunter2@registry:8081/subjects")
    except ValueError:
        logger.exception("asking %s failed", "http://user:hunter2@registry:8081")
    assert ("hunter2" in stream.getvalue(), stream.getvalue().count("user:***@registry")) == (
        False,
        3,
    )  # message, source line, error


def test_json_fields_of_any_shape_are_redacted_and_stay_json() -> None:
    stream = io.StringIO()
    configure_logging("json", 0, stream)
    extra = {
        "token": ["a b"],
        "conf": {"spark.hadoop.javax.jdo.option.ConnectionPassword": 'x"y', "n": 1, "url": "jdbc:p?password=x"},
        "seen": ("token=x", None, 1.5, True, ValueError("secret=x")),
    }
    logger.warning("m", extra=extra)
    written = json.loads(stream.getvalue())
    assert {name: written[name] for name in extra} == {
        "token": "***",
        "conf": {"spark.hadoop.javax.jdo.option.ConnectionPassword": "***", "n": 1, "url": "jdbc:p?password=***"},
        "seen": ["token=***", None, 1.5, True, "secret=***"],
    }


SHAPES = (
    "http://user:{}@host:8081/path",
    "connecting to postgresql+psycopg://u:{}@h/db failed",
    "https://:{}@host",
    "password={}",
    "jdbc:postgresql://h/db?user=u&password={}&ssl=true",
    "token = {}, next",
    "token=Bearer {}",
    "javax.jdo.option.ConnectionPassword={}",
    "fs.s3a.secret.key={};",
    "fs.s3a.encryption.key={}",
    "fs.gs.auth.service.account.private.key={}",
    "fs.azure.encryption.encoded.client-provided-key={}",
    "dfs.adls.oauth2.credential={}",
    "private.key=-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
    r"private_key: -----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n",
    "fs.azure.account.key.lake.dfs.core.windows.net={}",
    "fs.azure.account.oauth2.client.secret.lake.dfs.core.windows.net={}",
    "fs.azure.sas.landed.lake.blob.core.windows.net={}",
    "fs.azure.sas.fixed.token.lake.dfs.core.windows.net={}",
    "GET https://lake.blob.core.windows.net/landed/a.parquet?sv=2024-11-04&sig={}&sp=r",
    "https://lake.s3.amazonaws.com/a.parquet?X-Amz-Expires=60&X-Amz-Signature={}",
    "DefaultEndpointsProtocol=https;AccountKey={};EndpointSuffix=core.windows.net",
    "<Credentials><SecretAccessKey>{}</SecretAccessKey></Credentials>",
    "<AccessKeyId>ASIA</AccessKeyId><SessionToken>{}</SessionToken>",
    "x-amz-security-token:{}",
    '{{"password": "{}", "user": "u"}}',
    "{{'token': '{}'}}",
    "{{'token': b'{}'}}",
    r"{{\"password\": \"{}\"}}",
    'password="{}',
    "Authorization: Basic {}",
    "Authorization: Digest username=u, response={}",
    "authorization={}",
    "{{'Authorization': 'Bearer {}', 'Accept': '*/*'}}",
    "{{'Authorization': b'Bearer {}'}}",
    '{{"Authorization": ["Bearer {}"]}}',
    r"{{\"Authorization\": \"Bearer {}\"}}",
)


@pytest.mark.parametrize("shape", SHAPES)
@given(secret=st.text(alphabet="abcXYZ019._~+=-%!$*", min_size=1).map(lambda text: f"S3{text}CRET"))
def test_no_secret_survives_in_any_shape(shape: str, secret: str) -> None:
    once = redact(shape.format(secret))
    assert ("CRET" in once, "S3" in once, "***" in once) == (False, False, True)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "http://registry:8081/subjects/a@b/versions",
        "s3a://bucket/path token bucket",
        "unexpected token: }",
        "thrift://localhost:9083, alice@example.org",
        "password is not set",
        "https://h/x?significant=1&sign=2",
        "<Contents><Key>landed/a.parquet</Key></Contents>",
        "401: send Bearer <token> as the gateway says",
    ],
)
def test_a_line_without_secrets_stays_as_it_is(line: str) -> None:
    assert redact(line) == line


def test_what_stands_around_a_secret_stays() -> None:
    line = "GET http://u:p@h:8081/x?token=abc&page=2 {'password': 'a', 'n': 1}"
    assert redact(line) == "GET http://u:***@h:8081/x?token=***&page=2 {'password': ***, 'n': 1}"
