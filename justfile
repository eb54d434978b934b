# Names for the commands that are used most. `just --list` shows them.

# Run the server with a simulated ledger; arguments go to the demonstration.
demo *arguments:
    cargo run -- demo {{ arguments }}

# Run every test; arguments go to the test runner.
test *arguments:
    scripts/test {{ arguments }}

# Inject faults into several instances over one database; arguments such as --seconds 120 --seed 7.
chaos *arguments:
    scripts/chaos {{ arguments }}

# Pass many batches through each database while retention removes old ones; arguments such as --batches 20000.
soak *arguments:
    scripts/soak {{ arguments }}

# Run genuine clients of the ledgers against the server (docs/drop-in.md).
drop-in:
    scripts/drop-in

# Run the linter on all targets.
lint:
    cargo clippy --workspace --all-targets --features grid-batch-core/mocks,grid-batch-http/mocks,grid-batch-submitter/mocks,grid-batch-withdrawals/mocks,grid-batch/evm,grid-batch/otlp --locked -- -D warnings

# Format the code.
fmt:
    cargo fmt --all

# Build the documentation of our own crates.
doc:
    cargo doc --workspace --no-deps --locked

# Measure the server end to end (docs/performance.md); arguments such as --json, --quick or --full.
bench *arguments:
    cargo build --release --locked -p grid-batch -p grid-batch-benches
    target/release/grid-batch-bench table {{ arguments }}

# Measure signatures, the store and the submitter by themselves.
bench-crates:
    cargo bench --workspace

# Build the manual as a book of web pages.
manual:
    scripts/manual
