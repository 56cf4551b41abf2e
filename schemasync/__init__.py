"""Keep a Hive metastore and plain Parquet in step with a schema registry."""
