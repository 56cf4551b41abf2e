"""What storages say that have no room left."""

from __future__ import annotations

import pytest

from schemasync.core.no_space import no_space

QUOTA = "DSQuotaExceededException: The DiskSpace quota of /lake is exceeded: quota = 1 B but diskspace consumed = 2 B"
NODES = "could only be written to 0 of the 1 minReplication nodes. There are 3 datanode(s) running"


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
