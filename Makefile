.PHONY: test lint format services bench bench-small

test:
	./scripts/test

lint:
	./scripts/lint

format:
	ruff format .
	ruff check --fix .

services:
	./scripts/services

bench:
	./scripts/bench

bench-small:
	./scripts/bench --small
