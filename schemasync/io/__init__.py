"""The edges: one outside thing per module, each behind a Protocol with the fewest verbs."""
