"""What can differ between a table as it is and as it should be: one small class per fact, both sides carried.

Made by `schemasync.core.diff`, judged by `schemasync.core.policy`, shown in plans and notifications.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemasync.core.encoding import Encoding
from schemasync.core.schema import Column, Envelope, Life


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """A life that the desired schema has and the current one has not; it goes to ``position``."""

    column: Column
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """A life that ended."""

    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """The same life under another name."""

    life: Life
    current: str
    desired: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WidenColumn:
    """Another type that holds every old value exactly."""

    life: Life
    name: str
    current: Encoding
    desired: Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class RetypeColumn:
    """Another type that may not hold every old value."""

    life: Life
    name: str
    current: Encoding
    desired: Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSemanticType:
    """The same written type with another meaning: the numbers mean something else."""

    life: Life
    name: str
    current: Encoding
    desired: Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class AddField:
    """A member that appeared inside a struct; ``path`` leads to it from the column."""

    life: Life
    path: str
    current: Encoding
    desired: Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class DropField:
    """A member that vanished from inside a struct."""

    life: Life
    path: str
    current: Encoding
    desired: Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameField:
    """A member inside of a struct under another name; ``path`` leads to the new one, ``old`` is what it was called."""

    life: Life
    path: str
    old: str
    current: Encoding
    desired: Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDetail:
    """What neither types nor values show: enum symbols, nested nullability or order, a type's name."""

    life: Life
    name: str
    current: Encoding
    desired: Encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeNullability:
    """The column may be null now, or may no longer be."""

    life: Life
    name: str
    current: bool
    desired: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDefault:
    """Another Avro default. Older rows keep the one that was frozen when the column was added."""

    life: Life
    name: str
    current: str | None
    desired: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDoc:
    """Another comment."""

    life: Life
    name: str
    current: str
    desired: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeAliases:
    """Other Avro aliases, without a rename."""

    life: Life
    name: str
    current: tuple[str, ...]
    desired: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorderColumns:
    """The columns that both sides have stand in another order; names of the desired side, in its order."""

    current: tuple[str, ...]
    desired: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeKey:
    """Other key columns: which rows are the same row is decided anew."""

    current: tuple[str, ...]
    desired: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEnvelope:
    """Events are wrapped or ordered in another way."""

    current: Envelope
    desired: Envelope


EncodingChange = WidenColumn | RetypeColumn | ChangeSemanticType | AddField | DropField | RenameField | ChangeDetail
ColumnChange = EncodingChange | RenameColumn | ChangeNullability | ChangeDefault | ChangeDoc | ChangeAliases
Change = AddColumn | DropColumn | ColumnChange | ReorderColumns | ChangeKey | ChangeEnvelope
