"""The sample project that ships in the package, and the directory that it is copied to.

Called by the quickstart. The samples are what a Debezium PostgreSQL connector registered and what a sink wrote of it
with parquet-avro. Promises that a directory which holds anything else is never written to, and that a file which is
there already is never overwritten by the scaffold.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from schemasync.errors import StorageError, UsageError

SAMPLES: Final = Path(__file__).resolve().parent.parent / "samples"
"""``schemasync.yaml``, ``registry/SUBJECT/VERSION.avsc`` and ``lake/TOPIC/incremental/...`` of the sample project."""

MARK: Final = ".schemasync-quickstart"
"""The file by which a directory that an earlier quickstart made is known."""


def claim(directory: Path) -> bool:
    """Make the directory ours; return whether an earlier quickstart made it.

    Raises:
        UsageError: it is a file, or holds something that is not a quickstart's; nothing was touched.
        StorageError: it cannot be made or written.
    """
    with _translated(directory):
        if directory.exists() and not directory.is_dir():
            raise UsageError("this is a file", where=str(directory), fix="Name a directory that is new or empty.")
        if (directory / MARK).exists():
            return True
        if directory.exists() and any(directory.iterdir()):
            raise UsageError(
                "the directory is not empty, and no quickstart made it",
                where=str(directory),
                fix="Name one that is new or empty: schemasync quickstart DIR.",
            )
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MARK).write_text("Made by schemasync quickstart; may be deleted with everything beside it.\n")
    return False


def scaffold(directory: Path, places: Mapping[str, Sequence[str]]) -> None:
    """Copy samples: ``places`` maps a directory below ``directory`` to patterns of sample files; paths are kept.

    Raises:
        StorageError: the directory cannot be written, or the disk is full.
    """
    with _translated(directory):
        for place, patterns in places.items():
            for file in (f for pattern in patterns for f in sorted(SAMPLES.glob(pattern))):
                target = directory / place / file.relative_to(SAMPLES)
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists():
                    # By another name first: a copy that a kill cuts off must not pass for the file next time.
                    partial = target.with_name(f".{target.name}.part")
                    shutil.copyfile(file, partial)
                    partial.replace(target)


def copy_into(source: Path, directory: Path) -> None:
    """Do what ``cp -R source/. directory/`` does.

    Raises:
        StorageError: the directory cannot be written, or the disk is full.
    """
    with _translated(directory):
        shutil.copytree(source, directory, dirs_exist_ok=True, copy_function=shutil.copyfile)


@contextmanager
def _translated(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            "the directory cannot be written",
            where=str(error.filename or directory),
            why=error.strerror or str(error),
            fix="Free some space, or name a directory that this user may write.",
        ) from error
