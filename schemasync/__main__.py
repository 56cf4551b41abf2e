"""``python -m schemasync``: the same as the ``schemasync`` command."""

from __future__ import annotations

from schemasync.cli import main

if __name__ == "__main__":
    main()
