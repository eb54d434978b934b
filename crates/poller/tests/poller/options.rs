//! Validation of options.

use std::{env, process::Command, sync::Arc, time::Duration};

use grid_batch_core::batches::LedgerStatus;
use grid_batch_poller::{MonitorOptions, POLL_INTERVAL_VARIABLE};

use crate::support::*;

#[test]
fn builder_rejects_a_missing_part() {
    let store = Store::new();
    let built = Builder::new().with_store(store.clone()).with_updater(store).build();
    assert_eq!(built.unwrap_err().to_string(), "the polling monitor has no reader");
}

#[test]
fn options_of_zero_are_rejected() {
    let (store, ledger) = (Store::new(), Arc::new(Ledger::reporting(LedgerStatus::NotReported)));
    let build = |options| builder(&store, &ledger).with_options(options).build().map(drop);
    let zero = Duration::ZERO;
    let error = build(MonitorOptions { poll_interval: zero, ..options() }).unwrap_err();
    assert_eq!(error.to_string(), "the monitor's poll_interval is zero; it must be greater");
    for options in [
        MonitorOptions { shortest_interval: Some(zero), ..options() },
        MonitorOptions { longest_interval: zero, ..options() },
        MonitorOptions { requests_per_second: 0, ..options() },
        MonitorOptions { batch_limit: 0, ..options() },
        MonitorOptions { answer_limit: zero, ..options() },
        MonitorOptions { worker_threads: 0, ..options() },
        MonitorOptions { max_attempts: 0, ..options() },
    ] {
        assert!(build(options).is_err());
    }
}

/// The test runs itself as a child process, because setting a variable would affect other tests.
#[test]
fn poll_interval_is_read_from_the_environment() {
    const IN_CHILD: &str = "POLL_INTERVAL_IN_CHILD";
    if env::var_os(IN_CHILD).is_some() {
        let expected = env::var(IN_CHILD).unwrap();
        let read = match MonitorOptions::default().with_environment() {
            Ok(options) => format!("{:?}", options.poll_interval),
            Err(error) => error.to_string(),
        };
        return assert_eq!(read, expected);
    }
    let error = "GRID_BATCH_POLL_INTERVAL is \"soon\"; it must be a duration above zero: seconds, \
                 or a number with a unit, such as 500ms, 2s or 1m";
    for (value, expected) in
        [(None, "1s"), (Some("250ms"), "250ms"), (Some("3"), "3s"), (Some("soon"), error)]
    {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "options::poll_interval_is_read_from_the_environment"]);
        child.env(IN_CHILD, expected).env_remove(POLL_INTERVAL_VARIABLE);
        if let Some(value) = value {
            child.env(POLL_INTERVAL_VARIABLE, value);
        }
        let output = child.output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("1 passed"), "{value:?}: {stdout}");
    }
}
