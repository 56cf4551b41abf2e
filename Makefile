.PHONY: test lint format services

test:
	./scripts/test

lint:
	./scripts/lint

format:
	ruff format .
	ruff check --fix .

services:
	./scripts/services
