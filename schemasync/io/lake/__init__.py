"""The storage under a table's location: by Arrow's own file systems, or by Hadoop's through Spark's JVM."""
