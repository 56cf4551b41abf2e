"""The edges: one outside thing per module, each behind a Protocol with the fewest verbs."""

from __future__ import annotations

import os

# Before Arrow is there: its allocator reads this when it is loaded. By itself it gives pages back that nobody had for
# 10 ms, and the next rows get them anew from the system, which took a quarter of a compaction's time.
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "60000")
