//! `demo`: the demonstrations of `grid-batch-demo`.

mod progress_lines;
mod stop;
#[cfg(feature = "evm")]
mod withdrawals;

use std::{cell::RefCell, fmt::Display, path::PathBuf, process::ExitCode, thread, time::Duration};

use clap::{Args, value_parser};
use grid_batch_core::queue::StrategyKind;
use grid_batch_demo::{
    DemoError, DemoOptions, DemoProgress, DemoReport, FaultLevel, SimulatedLedger,
    demonstrate_and_keep,
};
use grid_batch_service::LogFormat;
use grid_batch_store::DatabaseUrl;
use grid_batch_support::Shutdown;
use serde::Serialize;

use progress_lines::ProgressLines;
use stop::StopSignal;

use crate::commands::{
    failure::Failure,
    flags::log_filter,
    logging,
    operator::{LINE_WIDTH, wrapped},
    print::{print_stderr, print_stdout},
};

/// Runs the server over a simulated ledger and audits the result
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Simulated ledger; evm is a chain of anvil, which must be installed
    #[arg(long, value_parser = ["sawtooth", "scabbard", "evm"], default_value = "scabbard")]
    ledger: String,
    /// Number of services [default: 50; sawtooth has one]
    #[arg(long, value_parser = value_parser!(u32).range(1..))]
    services: Option<u32>,
    /// Number of batches [default: 1000; with sawtooth 300, with evm 24]
    #[arg(long, value_parser = value_parser!(u32).range(1..))]
    batches: Option<u32>,
    /// Strategy of all services [default: serial; with sawtooth parallel]
    #[arg(long, value_parser = ["serial", "parallel"])]
    strategy: Option<String>,
    /// Faults of the ledger [default: none]
    #[arg(long, value_parser = ["none", "some", "harsh"])]
    faults: Option<String>,
    /// Database [default: an SQLite file that is removed afterwards]
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Directory for the database and the ledger's record; if they exist, the demonstration continues from them
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Seed of the faults, to repeat a run as far as threads allow
    #[arg(long)]
    seed: Option<u64>,
    /// Leaves the server running at the end, with its dashboard, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    keep_running: bool,
    /// Prints the audit as JSON, and no progress
    #[arg(long)]
    json: bool,
    /// Log level: off, error, warn, info or debug
    #[arg(long, value_parser = log_filter, default_value = "off")]
    log: String,
}

pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode, Failure> {
    if args.ledger == "evm" {
        return run_withdrawals(args);
    }
    logging::start(&args.log, LogFormat::Text, 0)?;
    let options = options(args)?;
    if !args.json {
        print_introduction(&options);
    }
    let stop = StopSignal::request(options.stop.clone())?;
    let lines = ProgressLines::start(args, &DemoProgress::WORDS, options.stop.clone());
    let lines = RefCell::new(lines);
    let watch = |progress: &DemoProgress| {
        let mut lines = lines.borrow_mut();
        lines.show(progress.time, &progress.explained(), progress.to_string());
    };
    let keep = |report: &DemoReport, url: &str| {
        lines.borrow_mut().end();
        if args.keep_running {
            print_stdout(format_args!("\n{report}\n\n{}", while_it_runs(url)));
            wait_for(&options.stop);
        }
    };
    let report = demonstrate_and_keep(&options, watch, keep);
    lines.borrow_mut().end();
    let left = match &options.keep {
        Some(directory) => format!("The same command continues from {}.", directory.display()),
        None => NOTHING_IS_LEFT.to_owned(),
    };
    finish(args, report, DemoReport::is_clean, &stop, &left)
}

/// What to look at while the server of a demonstration runs.
fn while_it_runs(url: &str) -> String {
    format!(
        "The server runs until Ctrl-C. Its dashboard: {url}/dashboard\n\
         Commands for it, in another shell: export GRID_BATCH_URL={url}"
    )
}

fn wait_for(stop: &Shutdown) {
    while !stop.is_requested() {
        thread::sleep(Duration::from_millis(50));
    }
}

/// What to do after a demonstration.
const NEXT: &str = "Next: --keep-running leaves the server running, with its dashboard;\n\
                    docs/tutorial.md goes from a key to a committed batch.";

const NEXT_OF_WITHDRAWALS: &str =
    "Next: docs/withdrawals-guide.md goes from a pool to a paid withdrawal.";

const NOTHING_IS_LEFT: &str = "Nothing is left.";

/// Prints the report of a demonstration, or what is left if a signal has stopped it.
fn finish<R: Display + Serialize>(
    args: &DemoArgs,
    report: Result<R, DemoError>,
    is_clean: fn(&R) -> bool,
    stop: &StopSignal,
    left: &str,
) -> Result<ExitCode, Failure> {
    if let Err(DemoError::Stopped) = report {
        print_stderr(format_args!("Stopped. {left}"));
        return Ok(stop.exit_code());
    }
    let report = report?;
    if args.json {
        print_stdout(serde_json::to_string(&report)?);
    } else if !args.keep_running {
        let next = if args.ledger == "evm" { NEXT_OF_WITHDRAWALS } else { NEXT };
        print_stdout(format_args!("\n{report}\n\n{next}"));
    }
    Ok(if is_clean(&report) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(feature = "evm")]
fn run_withdrawals(args: &DemoArgs) -> Result<ExitCode, Failure> {
    withdrawals::run(args)
}

#[cfg(not(feature = "evm"))]
fn run_withdrawals(_: &DemoArgs) -> Result<ExitCode, Failure> {
    let reason = "this build has no adapter for evm; build it with --features evm";
    Err(Failure::configuration(reason))
}

fn options(args: &DemoArgs) -> Result<DemoOptions, Failure> {
    let ledger = match args.ledger.as_str() {
        "sawtooth" => SimulatedLedger::Sawtooth,
        _ => SimulatedLedger::Scabbard,
    };
    let defaults = DemoOptions::new(ledger);
    let database = args.database.as_ref().map(|url| url.parse::<DatabaseUrl>());
    Ok(DemoOptions {
        services: args.services.map_or(defaults.services, |count| count as usize),
        batches: args.batches.map_or(defaults.batches, |count| count as usize),
        strategy: match args.strategy.as_deref() {
            Some("serial") => StrategyKind::Serial,
            Some("parallel") => StrategyKind::Parallel,
            _ => defaults.strategy,
        },
        faults: match args.faults.as_deref() {
            Some("some") => FaultLevel::Some,
            Some("harsh") => FaultLevel::Harsh,
            _ => FaultLevel::None,
        },
        database: database.transpose()?,
        keep: args.keep.clone(),
        seed: args.seed,
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
