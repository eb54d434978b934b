//! `grid-batch-bench`: see `docs/performance.md`.

use std::{io, process::ExitCode};

use clap::ArgMatches;
use grid_batch_benches::{ledger, options, report, run};

fn main() -> ExitCode {
    let matches = options::command().get_matches();
    let result = match matches.subcommand() {
        Some(("ledger", matches)) => run_ledger(matches),
        _ => run_once(&matches),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run_ledger(matches: &ArgMatches) -> io::Result<()> {
    ledger::run(options::ledger_kind(matches), options::delay(matches))
}

fn run_once(matches: &ArgMatches) -> io::Result<()> {
    let options = options::run_options(matches);
    let measurement = run::run(&options)?;
    let text = match matches.get_flag("json") {
        true => report::json(&options, &measurement).to_string(),
        false => report::text(&options, &measurement),
    };
    println!("{text}");
    Ok(())
}
