.PHONY: test lint format services bench bench-small bench-memory bench-dedup

test:
	./scripts/test

lint:
	./scripts/lint

format:
	ruff format .
	ruff check --fix .

services:
	./scripts/services

# Everything that was not measured yet, one piece after the other; then the page in docs/.
bench:
	./scripts/bench whole

bench-small:
	./scripts/bench --small

bench-memory:
	./scripts/bench memory

bench-dedup:
	./scripts/bench dedup
