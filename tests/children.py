"""Programs that tests start as processes of their own."""

from __future__ import annotations

from typing import Final

SHORT_LIVED: Final = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""Environment of one that starts Spark and soon ends: what runs a few times is not worth the second compiler.

Three tests of such programs took 65 s instead of 97 s with it; the whole suite, whose Spark stays, a fifth longer.
"""
