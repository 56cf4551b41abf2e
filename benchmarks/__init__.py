"""schemasync and its peers on the same change sets: generated, merged, read, checked, timed; see README.md here."""

from __future__ import annotations

# Before Arrow is imported, as in the program itself: it says how Arrow's allocator is to be set up.
import schemasync.io  # noqa: F401
