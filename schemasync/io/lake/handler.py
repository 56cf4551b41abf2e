"""What file systems of our own have in common: as much of Arrow's as lakes ask for."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import fs


class LakeFileSystem(fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow is untyped
    """Is what its type's name says, takes paths as they are, and refuses what is never done to a lake."""

    def __eq__(self, other: object) -> bool:
        """Tell whether both are the same storage."""
        return isinstance(other, type(self)) and self.get_type_name() == other.get_type_name()

    def __ne__(self, other: object) -> bool:
        """Tell whether they are not the same storage."""
        return not self == other

    def __hash__(self) -> int:
        """Hash what makes two equal."""
        return hash(self.get_type_name())

    def normalize_path(self, path: str) -> str:
        """Return the path as it is."""
        return path

    def open_append_stream(self, path: str, metadata: object) -> pa.NativeFile:
        """Refuse: nothing in a lake is ever appended to."""
        raise NotImplementedError

    def copy_file(self, src: str, dest: str) -> None:
        """Refuse: nothing in a lake is ever copied."""
        raise NotImplementedError

    def delete_dir_contents(self, path: str, missing_dir_ok: bool) -> None:
        """Refuse: directories of a lake go as a whole."""
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        """Refuse: a lake is not alone in its storage."""
        raise NotImplementedError
