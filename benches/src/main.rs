//! `grid-batch-bench`: see `docs/performance.md`.

use std::{io, path::PathBuf, process::ExitCode};

use clap::ArgMatches;
use grid_batch_benches::{
    backlog, command_line, comparison, ledger, report, rivals, run,
    table::{self, TableSize},
};

fn main() -> ExitCode {
    let matches = command_line::command().get_matches();
    let result = match matches.subcommand() {
        Some(("ledger", matches)) => run_ledger(matches),
        Some(("table", matches)) => run_table(matches),
        Some(("compare", matches)) => run_comparison(matches),
        Some(("rivals", matches)) => run_rivals(matches),
        Some(("backlog", matches)) => run_backlog(matches),
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
    ledger::run(command_line::ledger_kind(matches), command_line::delay(matches))
}

fn run_table(matches: &ArgMatches) -> io::Result<()> {
    let size = match (matches.get_flag("full"), matches.get_flag("quick")) {
        (true, _) => TableSize::Full,
        (_, true) => TableSize::Quick,
        _ => TableSize::Usual,
    };
    let rounds = matches.get_one("rounds").copied().unwrap_or(1);
    let rows = table::measure(&command_line::server(matches), size, rounds)?;
    if matches.get_flag("json") {
        println!("{}", table::json(&rows));
    } else {
        println!("{}", table::text(&rows));
    }
    Ok(())
}

fn run_comparison(matches: &ArgMatches) -> io::Result<()> {
    println!("{}", comparison::measure(&command_line::comparison(matches))?);
    Ok(())
}

fn run_rivals(matches: &ArgMatches) -> io::Result<()> {
    let scripts: &PathBuf = matches.get_one("scripts").ok_or(io::ErrorKind::InvalidInput)?;
    let units: Vec<usize> = matches.get_many("units").into_iter().flatten().copied().collect();
    let number = |name: &str| matches.get_one::<usize>(name).copied().unwrap_or(1);
    let (server, keys, rounds) = (command_line::server(matches), number("keys"), number("rounds"));
    println!("{}", rivals::measure(&server, scripts, &units, keys, rounds)?);
    Ok(())
}

fn run_backlog(matches: &ArgMatches) -> io::Result<()> {
    let measured = matches.get_one("measured").copied().unwrap_or(backlog::MEASURED);
    let start = backlog::measure(&command_line::run_options(matches), measured)?;
    println!("{}", if matches.get_flag("json") { start.json().to_string() } else { start.text() });
    Ok(())
}

fn run_once(matches: &ArgMatches) -> io::Result<()> {
    let options = command_line::run_options(matches);
    let measurement = run::run(&options)?;
    let text = if matches.get_flag("json") {
        report::json(&options, &measurement).to_string()
    } else {
        report::text(&options, &measurement)
    };
    println!("{text}");
    Ok(())
}
