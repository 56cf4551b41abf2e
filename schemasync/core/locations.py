"""Where something lies, as text: a URI, or a path of the local disk.

Used by whoever opens or compares locations, or a registry's directory. Promises that every character of a path stands
for itself, as engines read it (Hadoop's ``Path``): ``#``, ``?`` and ``%23`` are ordinary in the name of a directory. A
parser of URLs would cut the path at the first two, and two directories would become one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

PATTERN_SIGNS: Final = re.compile(r"[][*?{}\\]")
"""What makes a pattern of a path where Spark's readers are given one; in a table's definition it is a name."""
ARROW_NAMES: Final = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's names of schemes that Arrow calls otherwise."""

_OF_ARROW: Final = {"", "file", "s3", *ARROW_NAMES, "gs", "gcs", "abfs", "abfss", "mock"}
"""What Arrow reaches without libraries that do not come with it; ``mock`` is in memory."""

_WITHOUT_DIRECTORIES: Final = {"s3"}
"""Arrow's names of storages in which files need no directory, and lists tell of one all the same.

Google's has only objects, too, but there Arrow lists no directory that it has not put an object for.
"""

_SLASHES: Final = re.compile("/+")
_PARTS: Final = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*):(?://(?P<host>[^/]*))?)?(?P<path>.*)", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """The parts of a location; ``scheme`` is in lower case, and empty for a bare path, which has no host either."""

    scheme: str
    host: str
    path: str

    @property
    def is_local(self) -> bool:
        """Tell whether it is on the local disk."""
        return self.scheme in {"", "file"}

    @property
    def is_of_arrow(self) -> bool:
        """Tell whether Arrow has a file system of its own for it."""
        return self.scheme in _OF_ARROW


def parse_location(text: str) -> Location:
    """Take a location apart; every text is one."""
    found = _PARTS.fullmatch(text)
    scheme, host, path = found.group("scheme", "host", "path") if found else (None, None, text)
    return Location(scheme=(scheme or "").lower(), host=host or "", path=path)


def needs_directories(storage: str) -> bool:
    """Tell whether a directory has to be there before files are created in it; ``storage`` is Arrow's name of it.

    Where it has not, Arrow puts an empty object for every directory that it makes, and for each one above that, up to
    the bucket: others than a table's own may be closed to whoever writes it.
    """
    return storage not in _WITHOUT_DIRECTORIES


def without_empty_names(text: str) -> str:
    """Return a location without the slashes that Hadoop's ``Path`` drops: at its end, and all but one of several."""
    path = parse_location(text).path
    return f"{text.removesuffix(path)}{_SLASHES.sub('/', path)}".rstrip("/")


def lacks_host(text: str) -> bool:
    """Tell whether it depends on the settings of whoever reads a location in which storage it lies: ``hdfs:///lake``."""
    place = parse_location(text)
    return not place.is_local and not place.host and place.path.startswith("/")


def with_host_of(text: str, default: str) -> str:
    """Return a location that lacks a host with that of the ``default`` file system, where it is one of that scheme."""
    place, usual = parse_location(text), parse_location(default)
    if not lacks_host(text) or place.scheme != usual.scheme or not usual.host:
        return text
    return f"{usual.scheme}://{usual.host}{place.path}"


def as_pattern(text: str) -> str:
    """Return the pattern that only this location matches, for Spark's readers."""
    return PATTERN_SIGNS.sub(r"\\\g<0>", text)
