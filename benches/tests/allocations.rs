//! What the server allocates at load. Times are not compared, so that the test is the same on every machine.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{fs, path::Path};

use grid_batch_benches::{
    database::DatabaseKind,
    run::run,
    run_options::{LedgerProgram, RunOptions},
};

/// The allocations of a run, their bytes, and the bytes that the server still has at the end.
fn allocations(batches: usize, services: usize) -> [f64; 3] {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("allocations");
    let server = Path::new(env!("CARGO_BIN_EXE_grid-batch-counted-server"));
    // The ledger and the client are in the process of the test, which is not counted.
    let options = RunOptions {
        batches,
        services,
        ledger_program: LedgerProgram::Thread,
        settings: vec![("allocations".to_owned(), file.display().to_string())],
        ..RunOptions::new(server, DatabaseKind::Sqlite)
    };
    assert_eq!(run(&options).unwrap().out_of_order, Some(0));
    let counts = fs::read_to_string(file).unwrap();
    let counts: Vec<f64> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
    counts.try_into().unwrap()
}

#[test]
fn batches_at_load_take_few_allocations() {
    const BATCHES: usize = 3_000;
    let [allocations, bytes, _] = allocations(BATCHES, 100).map(|count| count / BATCHES as f64);
    println!("{allocations:.0} allocations and {bytes:.0} bytes a batch");
    // 680 and 157,000 to 175,000 were measured. On a slow machine, groups are smaller.
    assert!(allocations <= 800.0, "{allocations:.0} allocations a batch");
    assert!(bytes <= 180_000.0, "{bytes:.0} bytes a batch");
}

#[test]
fn thousand_event_sockets_take_little_memory() {
    let [_, _, kept] = allocations(10_000, 1_000).map(|count| count / 1e6);
    println!("{kept:.1} MB at 1,000 event sockets");
    // 20.3 were measured.
    assert!(kept <= 26.0, "{kept:.1} MB at 1,000 event sockets");
}
