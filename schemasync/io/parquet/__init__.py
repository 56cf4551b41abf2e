"""Landed files: footers, values, rows, and the two ways to admit them."""
