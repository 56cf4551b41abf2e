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

# Everything, one trial after the other; then the page in docs/, also where one of them found a system wrong.
bench:
	rm -f benchmarks/out/bench-*.json
	failed=0; \
	./scripts/bench || failed=1; \
	./scripts/bench --key uuid || failed=1; \
	./scripts/bench --shapes uniform-0.1% --reps 24 --read-reps 0 --mark day || failed=1; \
	./scripts/bench growth || failed=1; \
	./scripts/bench --rows 20000000 --memory 1500m \
		--systems schemasync delta-dv iceberg-mor hudi-mor-bloom hudi-mor-record paimon-mor || failed=1; \
	./scripts/bench report benchmarks/out/bench-*.json || failed=1; \
	exit $$failed

bench-small:
	./scripts/bench --small

bench-memory:
	./scripts/bench memory

bench-dedup:
	./scripts/bench dedup
