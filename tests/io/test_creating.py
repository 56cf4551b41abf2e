"""What S3 answers to a request that is to create a file; that of several creators one wins is tested on services."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import EndpointConnectionError
from botocore.httpsession import URLLib3Session
from botocore.stub import Stubber
from pyarrow import fs

from schemasync.errors import UsageError
from schemasync.io.lake import creating
from schemasync.io.lake.hadoop import HadoopFileSystem
from schemasync.io.parquet.writing import make_directory

REGION = "eu-south-2"
CREATED = {"Bucket": "bucket", "Key": "lake/x", "Body": b"rows", "IfNoneMatch": "*"}


def create() -> bool:
    return creating.creation(fs.S3FileSystem(region=REGION))("bucket/lake/x", b"rows")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    """Return what answers instead of S3; a test fails when an answer is left, or the request is another one."""
    client = boto3.client("s3", region_name=REGION, aws_access_key_id="tests", aws_secret_access_key="tests")
    monkeypatch.setattr(creating, "s3_client", {REGION: client}.__getitem__)
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def refuse(answers: Stubber, status: int, code: str, *, times: int = 1) -> None:
    for _ in range(times):
        answers.add_client_error("put_object", code, http_status_code=status, expected_params=CREATED)


def test_a_file_is_created_by_one_request_that_asks_for_a_new_one(answers: Stubber) -> None:
    answers.add_response("put_object", {}, expected_params=CREATED)
    assert create() is True


@pytest.mark.parametrize("met", [0, 1])
def test_a_directory_is_one_object_and_none_for_those_above_it(answers: Stubber, met: int) -> None:
    put: dict[str, Any] = {"expected_params": {"Bucket": "bucket", "Key": "lake/x/", "Body": b""}}
    for _ in range(met):
        answers.add_client_error("put_object", "ConditionalRequestConflict", http_status_code=409, **put)
    answers.add_response("put_object", {}, **put)
    creating.making(fs.S3FileSystem(region=REGION))("bucket/lake/x")


def test_files_on_s3_need_no_directory() -> None:
    make_directory(fs.S3FileSystem(region=REGION, endpoint_override="http://127.0.0.1:1"), "bucket/lake/x")


@pytest.mark.parametrize("code", ["PreconditionFailed", "412"])
def test_a_file_that_is_there_already_was_not_created(answers: Stubber, code: str) -> None:
    refuse(answers, 412, code)
    assert create() is False


def test_a_request_that_met_another_one_is_made_again(answers: Stubber) -> None:
    refuse(answers, 409, "ConditionalRequestConflict")
    answers.add_response("put_object", {}, expected_params=CREATED)
    assert create() is True


@pytest.mark.parametrize(
    ("status", "code", "times", "number"),
    [
        (409, "ConditionalRequestConflict", 5, errno.EIO),
        (403, "AccessDenied", 1, errno.EACCES),
        (404, "NoSuchBucket", 1, errno.EIO),
    ],
)
def test_what_s3_refuses_is_told_with_its_reason(
    answers: Stubber, status: int, code: str, times: int, number: int
) -> None:
    refuse(answers, status, code, times=times)
    with pytest.raises(OSError, match=code) as raised:
        create()
    assert raised.value.errno == number


@pytest.mark.parametrize(
    "error", [EndpointConnectionError(endpoint_url="http://nowhere"), ValueError("Invalid endpoint: http://nowhere")]
)
def test_an_address_that_is_not_reached_is_named(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(_: str) -> Any:
        raise error

    monkeypatch.setattr(creating, "s3_client", unreachable)
    with pytest.raises(OSError, match="http://nowhere"):
        create()


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidToken", "InvalidAccessKeyId"])
@pytest.mark.parametrize("renewed", [True, False])
def test_keys_that_were_renewed_in_their_file_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, renewed: bool
) -> None:
    asked: list[str] = []
    keys = tmp_path / "credentials"

    def send(_: URLLib3Session, request: AWSPreparedRequest) -> AWSResponse:
        asked.extend(re.findall("Credential=([a-z]+)/", str(request.headers["Authorization"])))
        refused = len(asked) > 1 and asked[-1] == "old"
        answer = AWSResponse(request.url, 403 if refused else 200, {}, Mock())
        answer._content = f"<Error><Code>{code}</Code></Error>".encode() if refused else b""
        return answer

    def use(key: str) -> None:
        keys.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = x\n")

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(keys))
    monkeypatch.setattr(creating, "_client", cache(creating._client.__wrapped__))
    monkeypatch.setattr(URLLib3Session, "send", send)
    use("old")
    first = create()
    if renewed:
        use("new")
        creating.making(fs.S3FileSystem(region=REGION))("bucket/lake/x")
    else:
        with pytest.raises(OSError, match=code):
            create()
    assert (first, asked) == (True, ["old", "old", "new" if renewed else "old"])


def test_hadoop_makes_a_request_that_met_another_one_again() -> None:
    answers: list[OSError | None] = [OSError(errno.EIO, "ConditionalRequestConflict: 409"), None]
    handler = Mock(spec=HadoopFileSystem)
    handler.creates_only.return_value = True
    handler.create_only.side_effect = answers
    assert creating._by_hadoop(Mock(handler=handler), "bucket/lake/x", b"rows") is True
    assert handler.create_only.call_count == 2


def test_without_its_library_a_table_on_s3_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'boto3>=1\.36'"):
        create()
