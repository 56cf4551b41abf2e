"""An S3 with one empty bucket: ``python -m tests.services.s3_server DIRECTORY``.

Started by the fixture `s3`. It listens on 127.0.0.1, keeps all in memory, and writes its port into ``DIRECTORY/port``
once it can be asked. Of several conditional requests one wins, as on S3: moto looks and stores in two steps, so that it
is given a lock for them.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any, Final

import boto3

from tests.services.announcing import announce

BUCKET: Final = "lake"


def serve(directory: Path) -> None:
    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    lock, put = threading.Lock(), S3Response.put_object

    def one_at_a_time(response: S3Response) -> Any:
        with lock:
            return put(response)

    S3Response.put_object = one_at_a_time  # type: ignore[method-assign, assignment]
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}").create_bucket(Bucket=BUCKET)
    announce(directory, port)
    threading.Event().wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
