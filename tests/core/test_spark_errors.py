"""What Spark's errors say of what began them, and of storages that have no room left."""

from __future__ import annotations

import pytest

from schemasync.core.spark_errors import cause, no_space

QUOTA = "DSQuotaExceededException: The DiskSpace quota of /lake is exceeded: quota = 1 B but diskspace consumed = 2 B"
NODES = "could only be written to 0 of the 1 minReplication nodes. There are 3 datanode(s) running"


OLD = "An error occurred while calling o74.parquet.\n: org.apache.spark.SparkException: Job aborted.\n\tat org.apache.X"
"""How Spark 3.5 tells of a failed job; 4.1 begins with a class of errors."""
BROKEN = "java.io.EOFException: Reached the end of stream"
NEW = "[TASK_WRITE_FAILED] Task failed while writing rows to file:/lake/base. SQLSTATE: 58030"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Exception(f"{OLD}\nCaused by: {NEW}\n\tat X\nCaused by: {BROKEN}\n\t... 9 more\n"), BROKEN),
        (Exception(OLD), "org.apache.spark.SparkException: Job aborted."),
        (Exception(NEW), NEW),
        (Exception(f"\n{NEW}\n\nJVM stacktrace:\norg.apache.Y\n\tat X\nCaused by: {BROKEN}\n\tat X"), BROKEN),
        (ConnectionError(111, "Connection refused"), "[Errno 111] Connection refused"),
        (ConnectionError(), "ConnectionError"),
    ],
)
def test_what_began_an_error_is_the_last_that_its_text_names(error: Exception, said: str) -> None:
    assert cause(error) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Caused by: java.io.IOException: No space left on device\n\tat java", "No space left on device"),
        ("OSError: [Errno 122] Disk quota exceeded: '/lake'", "Disk quota exceeded"),
        ("java.io.IOException: File too large", "File too large"),
        (f"An error occurred.\n: org.apache.hadoop.hdfs.protocol.{QUOTA}\n\tat org.apache", QUOTA),
        ("NSQuotaExceededException: quota of /lake", "NSQuotaExceededException: quota of /lake"),
        ("File /lake/x could only be replicated to 0 nodes, not 1", "could only be replicated to 0 nodes, not 1"),
        (f"java.io.IOException: File /lake/x {NODES}\n\tat org.apache", NODES),
        ("Permission denied: user=x, access=WRITE", None),
        ("File /lake/x could only be written to 1 of the 2 minReplication nodes", None),
    ],
)
def test_missing_room_is_told_by_what_storages_say(text: str, said: str | None) -> None:
    assert no_space(text) == said
