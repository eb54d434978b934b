//! The time of day may jump, so it is read in a few places only: to store it, to show it, and to
//! compare it with a stored time where an error costs no more than a request.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use grid_batch_tests::sources::{read, root, source_files, without_tests};

/// The files that read a time of day, and why they may. A path that ends in `/` is a directory.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/core/src/clock.rs", "the clock of the system"),
    ("crates/store/src/", "gives and compares stored times"),
    ("crates/api/src/access/control.rs", "whether a token has expired"),
    ("crates/api/src/reads/", "compares with stored times, and shows how long ago they were"),
    ("crates/api/src/rewards/create.rs", "the time of a new reward, to store"),
    ("crates/api/src/scabbard/statuses.rs", "the time of a status that has no stored one"),
    ("crates/api/src/tokens/list.rs", "whether a token has expired"),
    (
        "crates/service/src/server/maintenance.rs",
        "which batches ended long ago by their stored times",
    ),
    ("crates/cli/src/commands/", "how long ago a stored time was"),
    ("crates/api/src/webhooks/change.rs", "until when a secret is used, to store"),
    ("crates/api/src/transactions/send.rs", "whether the deadline of a client has passed"),
    ("crates/evm/src/context.rs", "whether the deadline of a client has passed"),
    ("crates/evm/src/sync/refused_call.rs", "the age of a block, which has a time of day"),
    ("crates/http/src/client.rs", "a date in `Retry-After` of a server that sends no `Date`"),
    ("crates/poller/src/leader.rs", "which batches are due by their stored times"),
    ("crates/poller/src/evidence_search.rs", "when to look; not what the evidence comes to"),
    ("crates/queuer/src/strategy_round_store.rs", "whether a stored delay is over"),
    ("crates/queuer/src/wake_up.rs", "when a stored delay ends; the queue also scans"),
    (
        "crates/webhooks/src/deliverer.rs",
        "the time of a request, and when one is tried again, to store",
    ),
    ("crates/ledger-sim/", "a simulated ledger has a clock of its own"),
    ("crates/nodes/src/pool.rs", "an outage is shown with the time at which it began"),
    ("crates/monitoring/src/waits.rs", "a wait is shown with the time at which it began"),
    ("crates/test-support/", "for tests"),
];

#[test]
fn time_of_day_is_read_in_listed_files_only() {
    let mut found = Vec::new();
    for file in source_files() {
        let name = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if ALLOWED.iter().any(|(allowed, _)| name.starts_with(allowed)) {
            continue;
        }
        for (number, line) in (1..).zip(without_tests(&read(&file)).lines()) {
            if reads_time_of_day(line) {
                found.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(
        found.is_empty(),
        "measure with `Clock::monotonic` or `Instant`, or say in this test why not:\n{}",
        found.join("\n")
    );
}

#[test]
fn listed_files_read_the_time_of_day() {
    for (name, _) in ALLOWED {
        let path = root().join(name);
        assert!(path.exists(), "{name} does not exist");
        let reads = path.is_dir() || without_tests(&read(&path)).lines().any(reads_time_of_day);
        assert!(reads, "{name} does not read the time of day and need not be listed");
    }
}

/// Distinguishes `clock.now()` from `Instant::now()`, which has no dot before `now`.
fn reads_time_of_day(line: &str) -> bool {
    let code = line.split("//").next().unwrap();
    code.contains(".now()") || code.contains("SystemTime::now")
}

#[test]
fn only_readings_of_the_time_of_day_are_found() {
    for line in ["let a = clock.now();", "SystemTime::now()", "x(self.clock.now().since(y))"] {
        assert!(reads_time_of_day(line), "{line}");
    }
    for line in ["Instant::now()", "clock.monotonic()", "// clock.now()"] {
        assert!(!reads_time_of_day(line), "{line}");
    }
}
