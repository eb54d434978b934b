//! How much the server allocates for each batch, at load. Times are not compared, so that the test is the
//! same on every machine.

use std::{fs, path::Path};

use grid_batch_benches::{
    database::DatabaseKind,
    run::run,
    run_options::{LedgerProgram, RunOptions},
};

#[test]
fn batches_at_load_take_few_allocations() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("allocations");
    let server = Path::new(env!("CARGO_BIN_EXE_grid-batch-counted-server"));
    // The ledger and the client are in the process of the test, which is not counted.
    let options = RunOptions {
        batches: 3_000,
        ledger_program: LedgerProgram::Thread,
        settings: vec![("allocations".to_owned(), file.display().to_string())],
        ..RunOptions::new(server, DatabaseKind::Sqlite)
    };
    let run = run(&options).unwrap();
    assert_eq!(run.out_of_order, Some(0));
    let counts = fs::read_to_string(file).unwrap();
    let (allocations, bytes) = counts.split_once(' ').unwrap();
    let allocations = run.per_batch(allocations.parse().unwrap());
    let bytes = run.per_batch(bytes.parse().unwrap());
    println!("{allocations:.0} allocations and {bytes:.0} bytes a batch");
    // 680 and 157,000 to 175,000 were measured. On a slow machine, groups are smaller.
    assert!(allocations <= 800.0, "{allocations:.0} allocations a batch");
    assert!(bytes <= 180_000.0, "{bytes:.0} bytes a batch");
}
