from benchmarks.planning import measure


def test_every_part_of_planning_is_measured() -> None:
    found = measure(shards=40, deltas=20, touched=5)
    assert len(found) == 6
    assert all(seconds >= 0 for seconds in found.values())
