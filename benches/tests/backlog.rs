//! What a start costs with many open batches, compared with few of them in the same run, so that the test is the same
//! on every machine.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{path::Path, time::Duration};

use grid_batch_benches::{
    backlog::{self, BacklogStart},
    database::DatabaseKind,
    run_options::{LedgerProgram, RunOptions},
};

/// Added to each time, because the shortest ones are those of the machine.
const ALWAYS: Duration = Duration::from_millis(500);

fn start_with(open: usize, services: usize) -> BacklogStart {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("allocations");
    let options = RunOptions {
        batches: open,
        services,
        batches_per_request: 100,
        ledger_program: LedgerProgram::Thread,
        event_sockets: Some(100),
        settings: vec![("allocations".to_owned(), file.display().to_string())],
        ..RunOptions::new(
            Path::new(env!("CARGO_BIN_EXE_grid-batch-counted-server")),
            DatabaseKind::Sqlite,
        )
    };
    let start = backlog::measure(&options, 500).unwrap();
    println!("{services} services: {}", start.text());
    assert_eq!(start.open, open);
    start
}

#[test]
fn start_does_not_read_all_open_batches() {
    let small = start_with(500, 50);
    let large = start_with(50_000, 5_000);
    let ratio = |large: f64, small: f64| large / small;
    let time = |start: &BacklogStart| (start.first_post + ALWAYS).as_secs_f64();
    let first_post = ratio(time(&large), time(&small));
    let memory = ratio(large.memory as f64, small.memory as f64);
    let peak_memory = ratio(large.peak_memory as f64, small.peak_memory as f64);
    println!("{first_post:.1} times the time, {memory:.1} and {peak_memory:.1} times the memory");
    assert!(first_post < 4.0, "{first_post:.1} times the time until the first POST");
    assert!(memory < 2.0, "{memory:.1} times the memory at the first POST");
    assert!(peak_memory < 2.0, "{peak_memory:.1} times the peak memory");
}
