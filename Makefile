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

# Everything, one trial after the other; then the page in docs/.
bench:
	./scripts/bench
	./scripts/bench --key uuid
	./scripts/bench --shapes uniform-0.1% --reps 24 --read-reps 0 --mark day
	./scripts/bench --rows 20000000 --changes-of 2000000 --systems schemasync --read-reps 0 --memory 1500m
	./scripts/bench --rows 20000000 --shapes recent-1% uniform-20% --reps 1 --warmups 0 --memory 1500m \
		--systems schemasync delta-dv iceberg-mor hudi-mor-bloom hudi-mor-record
	./scripts/bench report benchmarks/out/bench-*.json

bench-small:
	./scripts/bench --small

bench-memory:
	./scripts/bench memory

bench-dedup:
	./scripts/bench dedup
