"""The use cases: they wire the pure core to the edges. Clock, sleep and random are arguments."""
