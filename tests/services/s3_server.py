"""An S3 with one empty bucket: ``python -m tests.services.s3_server DIRECTORY``.

Started by the fixture `s3`. It listens on 127.0.0.1, keeps all in memory, and writes its port into ``DIRECTORY/port``
once it can be asked. It honours conditions of requests, as S3 does.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Final

import boto3

from tests.services.announcing import announce

BUCKET: Final = "lake"


def serve(directory: Path) -> None:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}").create_bucket(Bucket=BUCKET)
    announce(directory, port)
    threading.Event().wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
