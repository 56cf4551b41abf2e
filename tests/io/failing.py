"""A disk that fails for a while."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyarrow import fs


class Failing(fs.LocalFileSystem):  # type: ignore[misc]  # pyarrow is untyped
    """A local disk on which opening a file goes wrong, or well where one of the ``errors`` is None.

    Once all of them were raised it goes well. ``reading``: files can be opened, and not read.
    """

    def __init__(self, errors: Iterable[Exception | None], *, reading: bool = False) -> None:
        super().__init__()
        self._errors = iter(errors)
        self._reading = reading

    def open_input_file(self, path: str) -> pa.NativeFile:
        error = next(self._errors, None)
        if error is None:
            return super().open_input_file(path)
        if not self._reading:
            raise error
        return pa.PythonFile(_Broken(self.get_file_info(path).size, error), mode="r")


class _Broken:
    """A file whose content does not come."""

    closed = False

    def __init__(self, size: int, error: Exception) -> None:
        self._size, self._error = size, error
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._size

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def read(self, _: int = -1) -> bytes:
        raise self._error

    def close(self) -> None:
        self.closed = True
