//! What the server asks of its database for each batch, at load. Times are not compared, so that the test
//! is the same on every machine.
#![expect(clippy::unwrap_used, reason = "tests panic at any error")]

use std::{fs, path::Path, time::Duration};

use grid_batch_benches::{
    backlog, command_line,
    database::DatabaseKind,
    measurement::Measurement,
    report,
    run::run,
    run_options::{LedgerProgram, RunOptions},
};

/// The most that a batch may take, on average.
struct Bounds {
    commits: f64,
    log_bytes: f64,
    statements: f64,
    rows: f64,
}

// On a slow machine, groups are smaller and a run has more of what happens at intervals. On PostgreSQL a batch takes 1.0
// commits and 3.4 statements on a machine without other work, 1.4 and 4.3 on one with three times as many runnable
// threads as cores, and 9.4 and 39 without any groups. Rows and bytes hardly depend on groups: a third above.

#[test]
fn batches_at_load_take_few_commits_on_sqlite() {
    let bounds = Bounds { commits: 0.5, log_bytes: 16_000.0, statements: 0.0, rows: 0.0 };
    check(DatabaseKind::Sqlite, &bounds);
}

#[test]
fn batches_at_load_take_few_statements_on_postgresql() {
    let bounds = Bounds { commits: 1.8, log_bytes: 4_400.0, statements: 5.5, rows: 20.0 };
    check(DatabaseKind::Postgres, &bounds);
}

fn check(database: DatabaseKind, bounds: &Bounds) {
    let server = Path::new(env!("CARGO_BIN_EXE_grid-batch"));
    let options = RunOptions {
        batches: 3_000,
        batches_per_request: 10,
        ledger_program: LedgerProgram::Thread,
        ..RunOptions::new(server, database)
    };
    let run = run(&options).unwrap();
    println!("{}", report::text(&options, &run));
    let Measurement { database: used, .. } = &run;
    assert_eq!(run.out_of_order, Some(0));
    let is_at_most = |name: &str, total: u64, bound: f64| {
        let used = run.per_batch(total as f64);
        assert!(used <= bound, "{name} a batch: {used:.3}, more than {bound}");
    };
    is_at_most("commits", used.commits, bounds.commits);
    is_at_most("bytes of log", used.log_bytes, bounds.log_bytes);
    // SQLite does not count these.
    is_at_most("statements", used.statements.unwrap_or_default(), bounds.statements);
    is_at_most("rows", used.rows.unwrap_or_default(), bounds.rows);
}

/// Each command runs, with fewer batches.
#[test]
fn commands_of_the_documentation_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
    let document = fs::read_to_string(path).unwrap();
    let commands =
        document.lines().filter(|line| line.starts_with("target/release/grid-batch-bench"));
    let mut count = 0;
    for command in commands {
        let matches = command_line::command().try_get_matches_from(command.split(' ')).unwrap();
        let (name, arguments) = matches.subcommand().unwrap_or(("", &matches));
        let written = command_line::run_options(arguments);
        let is_simulated = written.ledger_program == LedgerProgram::Simulator;
        let own = if is_simulated { LedgerProgram::Simulator } else { LedgerProgram::Thread };
        let options = RunOptions {
            server: env!("CARGO_BIN_EXE_grid-batch").into(),
            batches: 40,
            services: written.services.min(20),
            idle: written.idle.min(Duration::from_secs(1)),
            ledger_program: own,
            ..written
        };
        match name {
            "backlog" => {
                assert_eq!(backlog::measure(&options, backlog::MEASURED).unwrap().open, 40);
            }
            _ => {
                let expected = (!is_simulated).then_some(0);
                assert_eq!(run(&options).unwrap().out_of_order, expected, "{command}");
            }
        }
        count += 1;
    }
    assert_eq!(count, 7);
}
