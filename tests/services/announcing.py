"""How a service that the suite starts says where it listens."""

from __future__ import annotations

from pathlib import Path


def announce(directory: Path, port: int) -> None:
    """Write the port into ``DIRECTORY/port``, whole or not at all."""
    whole = directory / "port.new"
    whole.write_text(str(port))
    whole.rename(directory / "port")
