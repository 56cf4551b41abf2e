"""The pure core: no clock, files, network, Spark, Jinja or terminal."""
