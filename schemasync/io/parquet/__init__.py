"""Parquet files, with Arrow and in Spark's tasks: landed ones and how they are admitted, shards and their merging."""
