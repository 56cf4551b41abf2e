"""What the texts of Spark's errors say: what began them, and whether a storage had no room left.

Used wherever Spark works for us. What is due to be cleaned up makes room, so that is told apart from all else that
fails.
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
_CAUSE: Final = (": ", "Caused by: ")
"""How the lines begin that name an error in the text of Py4J's; the last one is what began it."""


def cause(error: Exception) -> str:
    """Return what began an error, in one line: the last that its text names, its first line where it names none.

    Spark 3.5 raises a failed job as Py4J's own error, whose first line only says that a call failed.
    """
    lines = str(error).strip().splitlines()
    causes = [line.removeprefix("Caused by").removeprefix(": ") for line in lines if line.startswith(_CAUSE)]
    return (causes or lines[:1] or [type(error).__name__])[-1][:_LONGEST]


def no_space(text: str) -> str | None:
    """Return what a text says of missing room, None where it is about something else."""
    found = _SAID.search(text)
    return found and found[0].strip()[:_LONGEST]
