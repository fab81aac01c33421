# The commands that are run before a commit, now and then, and seldom.
#
#   make check   before every commit: format, lints, tests, documentation; of the experiments too
#   make gpu     on a machine with a device: a test that finds none fails
#   make bench   micro-benchmarks of the parts of a job (jobs/experiments/benches)
#   make campaign  kills, refused storage and changed indexes, by the thousand
#   make fuzz    every fuzz target, or FUZZ_TARGETS, for FUZZ_SECONDS each; needs a C++ compiler

FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard tests/fuzz/fuzz_targets/*.rs)))
# Programs that the tests have built.
BUILT ?= $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)/debug
# Where targets put files: best in memory.
FUZZ_SCRATCH ?= $(if $(wildcard /dev/shm),/dev/shm,.)

.PHONY: check gpu bench campaign fuzz

check:
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	for features in "" gpu; do \
		cargo clippy -p millrace-ir --lib --locked --no-default-features --features "$$features" -- -D warnings || exit 1; \
	done
	cargo clippy -p millrace-ir --lib --bins --tests --locked --no-default-features --features program -- -D warnings
	cargo run --quiet -p millrace-ir --locked --no-default-features --features program --bin millrace -- demo >/dev/null
	@if cargo nextest --version >/dev/null 2>&1; then \
		echo "cargo nextest run --workspace && cargo test --doc"; \
		cargo nextest run --workspace && cargo test --doc; \
	else \
		echo "cargo test --workspace"; \
		cargo test --workspace; \
	fi
	rows=$$(mktemp -d) && SMALLEST=1 MILLRACE=$(BUILT)/millrace EXPERIMENTS=$(BUILT)/experiments scripts/papers all $$rows && rm -rf $$rows
	RUSTFLAGS="--cfg fuzzing" CARGO_TARGET_DIR=target/fuzz-check cargo check --manifest-path tests/fuzz/Cargo.toml --locked
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	scripts/public-items

# A test that needs a device or NVRTC and finds none fails.
gpu:
	MILLRACE_REQUIRE_GPU=1 MILLRACE_REQUIRE_NVRTC=1 cargo test

bench:
	cargo bench -p experiments

# CAMPAIGN_PART=20 does every twentieth of it. What makes jobs fail is in builds with debug assertions alone.
campaign:
	TMPDIR=$(FUZZ_SCRATCH) cargo test --lib --test tests campaign_ -- --ignored --nocapture --test-threads 1

# libdeflate has a table of one name in two of its files, which the sanitizer takes for a mistake.
# A target ends with an error at the first input that crashes it; that input is in tests/fuzz/artifacts.
fuzz:
	cd tests/fuzz && cargo build --release --locked
	@cd tests/fuzz && scratch=$$(mktemp -d -p $(FUZZ_SCRATCH)) && trap 'rm -rf "$$scratch"' EXIT && \
	bins=$$(cargo metadata --format-version 1 --no-deps --locked | \
		sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/x86_64-unknown-linux-gnu/release && \
	for target in $(FUZZ_TARGETS); do \
		echo "fuzz $$target"; \
		mkdir -p "corpus/$$target" "artifacts/$$target"; \
		ASAN_OPTIONS=detect_odr_violation=0 TMPDIR="$$scratch" "$$bins/$$target" "corpus/$$target" "seeds/$$target" \
			-max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -rss_limit_mb=4096 \
			-malloc_limit_mb=1024 -artifact_prefix="artifacts/$$target/" || exit 1; \
	done
