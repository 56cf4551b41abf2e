"""The edge to schema registries: one behind HTTP, and a directory that plays one.

``http`` and ``file`` are what the app opens; the rest is theirs: ``auth`` (who we are), ``endpoint`` (whom we ask),
``transport`` (asking until there is an answer), ``wire`` (what an answer means), ``kept`` (what was answered before),
``entries`` (what a file holds).
"""
