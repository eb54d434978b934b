//! `demo`: the demonstrations of `grid-batch-demo`.

mod progress_lines;
mod stop;
#[cfg(feature = "evm")]
mod withdrawals;

use std::{path::PathBuf, process::ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use grid_batch_core::queue::StrategyKind;
use grid_batch_demo::{
    DemoError, DemoOptions, DemoProgress, DemoReport, FaultLevel, SimulatedLedger, demonstrate,
};
use grid_batch_store::DatabaseUrl;

use progress_lines::ProgressLines;
use stop::StopSignal;

use crate::commands::{
    failure::Failure,
    flags::log_filter,
    logging::{self, LogOptions},
    operator::{LINE_WIDTH, wrapped},
    print::{print_stderr, print_stdout},
};

pub(crate) fn command() -> Command {
    let count = || value_parser!(u32).range(1..);
    Command::new("demo")
        .about("Runs the server over a simulated ledger and audits the result")
        .arg(
            Arg::new("ledger")
                .long("ledger")
                .value_parser(["sawtooth", "scabbard", "evm"])
                .default_value("scabbard")
                .help("Simulated ledger; evm is a chain of anvil, which must be installed"),
        )
        .arg(
            Arg::new("services")
                .long("services")
                .value_parser(count())
                .help("Number of services [default: 50; sawtooth has one]"),
        )
        .arg(
            Arg::new("batches")
                .long("batches")
                .value_parser(count())
                .help("Number of batches [default: 1000; with sawtooth 300, with evm 24]"),
        )
        .arg(
            Arg::new("strategy")
                .long("strategy")
                .value_parser(["serial", "parallel"])
                .help("Strategy of all services [default: serial; with sawtooth parallel]"),
        )
        .arg(
            Arg::new("faults")
                .long("faults")
                .value_parser(["none", "some", "harsh"])
                .default_value("none")
                .help("Faults of the ledger"),
        )
        .arg(
            Arg::new("database")
                .long("database")
                .value_name("URL")
                .help("Database [default: an SQLite file that is removed afterwards]"),
        )
        .arg(Arg::new("keep").long("keep").value_name("DIR").help(
            "Directory for the database and the ledger's record; if they exist, the \
             demonstration continues from them",
        ))
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_parser(value_parser!(u64))
                .help("Seed of the faults, to repeat a run as far as threads allow"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Prints the audit as JSON, and no progress"),
        )
        .arg(
            Arg::new("log")
                .long("log")
                .value_parser(log_filter)
                .default_value("off")
                .help("Log level: off, error, warn, info or debug"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    if text(matches, "ledger") == "evm" {
        return run_withdrawals(matches);
    }
    logging::start(LogOptions::all(text(matches, "log")))?;
    let options = options(matches)?;
    let json = matches.get_flag("json");
    if !json {
        print_introduction(&options);
    }
    let stop = StopSignal::request(options.stop.clone())?;
    let report = demonstrate_with_progress(&options, json, text(matches, "log") == "off");
    if let Err(DemoError::Stopped) = report {
        print_stopped(&options);
        return Ok(stop.exit_code());
    }
    let report = report?;
    if json {
        print_stdout(serde_json::to_string(&report)?);
    } else {
        print_stdout(format_args!("\n{report}"));
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn demonstrate_with_progress(
    options: &DemoOptions,
    is_quiet: bool,
    is_alone: bool,
) -> Result<DemoReport, DemoError> {
    if is_quiet {
        return demonstrate(options, |_| ());
    }
    let mut lines = ProgressLines::new(DemoProgress::WORDS.len() + 1, is_alone);
    lines.explain(&DemoProgress::WORDS);
    let report = demonstrate(options, |progress| {
        if options.stop.is_requested() {
            return;
        }
        lines.show(progress.time, &progress.explained(), progress.to_string());
    });
    lines.end();
    report
}

fn print_stopped(options: &DemoOptions) {
    match &options.keep {
        Some(directory) => print_stderr(format_args!(
            "Stopped. The same command continues from {}.",
            directory.display()
        )),
        None => print_stderr("Stopped. Nothing is left."),
    }
}

#[cfg(feature = "evm")]
fn run_withdrawals(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    withdrawals::run(matches)
}

#[cfg(not(feature = "evm"))]
fn run_withdrawals(_: &ArgMatches) -> Result<ExitCode, Failure> {
    let reason = "this build has no adapter for evm; build it with --features evm";
    Err(Failure::configuration(reason))
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}

fn options(matches: &ArgMatches) -> Result<DemoOptions, Failure> {
    let count = |name: &str| matches.get_one::<u32>(name).map(|count| *count as usize);
    let ledger = match text(matches, "ledger") {
        "sawtooth" => SimulatedLedger::Sawtooth,
        _ => SimulatedLedger::Scabbard,
    };
    let defaults = DemoOptions::new(ledger);
    Ok(DemoOptions {
        services: count("services").unwrap_or(defaults.services),
        batches: count("batches").unwrap_or(defaults.batches),
        strategy: match text(matches, "strategy") {
            "serial" => StrategyKind::Serial,
            "parallel" => StrategyKind::Parallel,
            _ => defaults.strategy,
        },
        faults: match text(matches, "faults") {
            "some" => FaultLevel::Some,
            "harsh" => FaultLevel::Harsh,
            _ => FaultLevel::None,
        },
        database: matches
            .get_one::<String>("database")
            .map(|url| url.parse::<DatabaseUrl>())
            .transpose()?,
        keep: matches.get_one::<String>("keep").map(PathBuf::from),
        seed: matches.get_one::<u64>("seed").copied(),
        ..defaults
    })
}

fn print_introduction(options: &DemoOptions) {
    let DemoOptions { ledger, services, batches, strategy, faults, .. } = options;
    let plural = if *services == 1 { "service" } else { "services" };
    let database = match &options.database {
        Some(url) => url.to_string(),
        None => "an SQLite file".to_owned(),
    };
    let text = format!(
        "{batches} batches for {services} {plural} of a simulated {} ledger, strategy: {}, faults: {}, \
         stored in {database}.",
        ledger.as_str(),
        strategy.as_str(),
        faults.as_str(),
    );
    wrapped("", &text, LINE_WIDTH).into_iter().for_each(print_stderr);
}
