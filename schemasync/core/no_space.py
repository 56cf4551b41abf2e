"""How storages say that they have no room left, in the texts of errors that engines pass on.

Used wherever Spark writes: what is due to be cleaned up makes room, so this is told apart from all else that fails.
"""

from __future__ import annotations

import re
from typing import Final

_SAID: Final = re.compile(
    "No space left on device|Disk quota exceeded|File too large"
    # Those of HDFS: quotas of bytes and of names, and no DataNode that takes another block.
    r"|(?:\w*QuotaExceededException|could only be (?:replicated|written) to 0).*"
)
_LONGEST: Final = 500


def no_space(text: str) -> str | None:
    """Return what a text says of missing room, None where it is about something else."""
    found = _SAID.search(text)
    return found and found[0].strip()[:_LONGEST]
