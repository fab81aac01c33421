# What is run how often?
#
#   make check   before every commit: format, lints, tests, documentation
#   make gpu     on a machine with a device: a test that finds none fails
#   make bench   micro-benchmarks
#   make fuzz    every fuzz target for FUZZ_SECONDS; needs cargo-fuzz and a nightly compiler

FUZZ_SECONDS ?= 60

.PHONY: check gpu bench fuzz

check:
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings
	@if cargo nextest --version >/dev/null 2>&1; then \
		echo "cargo nextest run && cargo test --doc"; \
		cargo nextest run && cargo test --doc; \
	else \
		echo "cargo test"; \
		cargo test; \
	fi
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked

# A test that needs a device asks for this variable when it finds none.
gpu:
	@if grep -rqs MILLRACE_REQUIRE_GPU src tests; then \
		echo "MILLRACE_REQUIRE_GPU=1 cargo test"; \
		MILLRACE_REQUIRE_GPU=1 cargo test; \
	else \
		echo "no test needs a device yet"; \
	fi

bench:
	cargo bench

fuzz:
	@if [ -d fuzz/fuzz_targets ]; then \
		for target in $$(cargo +nightly fuzz list); do \
			echo "cargo +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS)"; \
			cargo +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
		done; \
	else \
		echo "there are no fuzz targets yet"; \
	fi
