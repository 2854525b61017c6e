# The usual verbs, in the checkout as it stands. `.ci/run` does them all, and more, on a fresh clone.

BIN ?= .venv/bin

.PHONY: test lint types docs bench

test: # the quick tests of every room; a part: .venv/bin/pytest tests/layout
	$(BIN)/pytest

lint: # style and format; `$(BIN)/ruff format` mends the latter
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: # the three packages, as they are when installed
	.ci/types $(BIN) build/typed

docs: # the book, in build/book/index.html
	$(BIN)/sphinx-build -W --keep-going -j auto notebooks build/book

bench: # Rote against what else is installed here, on two ranks
	PATH=$(abspath $(BIN)):$$PATH mpiexec -n 2 rote bench
