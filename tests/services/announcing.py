"""How a service that the suite starts says where it listens."""

from __future__ import annotations

import socket
from pathlib import Path


def announce(directory: Path, port: int) -> None:
    """Write the port into ``DIRECTORY/port``, whole or not at all."""
    whole = directory / "port.new"
    whole.write_text(str(port))
    whole.rename(directory / "port")


def free_port() -> int:
    """Return a port of 127.0.0.1 for a service that must be told one."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
