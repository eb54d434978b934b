use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use grid_batch_service::demo::{
    DemoOptions, DemoProgress, FaultLevel, SimulatedLedger, demonstrate,
};
use grid_batch_store::DatabaseUrl;

use crate::commands::{
    failure::Failure,
    logging,
    output::{say, say_aside},
    withdrawal_demo,
};

pub(crate) fn command() -> Command {
    let count = || value_parser!(u32).range(1..);
    Command::new("demo")
        .about("Shows everything on this machine, with a ledger that is simulated, and audits it")
        .arg(
            Arg::new("ledger")
                .long("ledger")
                .value_parser(["sawtooth", "scabbard", "evm"])
                .default_value("scabbard")
                .help("Which ledger is simulated; evm is a chain of anvil, which must be there"),
        )
        .arg(
            Arg::new("services")
                .long("services")
                .value_parser(count())
                .help("How many services batches are for [default: 50; sawtooth has one]"),
        )
        .arg(
            Arg::new("batches").long("batches").value_parser(count()).help(
                "How many batches are handed in [default: 1000; with sawtooth 300, with evm 24]",
            ),
        )
        .arg(
            Arg::new("faults")
                .long("faults")
                .value_parser(["none", "some", "harsh"])
                .default_value("none")
                .help("What goes wrong at the ledger"),
        )
        .arg(
            Arg::new("database").long("database").value_name("URL").help(
                "Where batches are stored [default: an SQLite file that is removed afterwards]",
            ),
        )
        .arg(Arg::new("keep").long("keep").value_name("DIR").help(
            "Leaves database and ledger record there, and goes on from them when started again",
        ))
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_parser(value_parser!(u64))
                .help("Makes the faults repeatable, as far as threads are"),
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
                .default_value("off")
                .help("What is logged: off, error, warn, info, debug"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    if text("ledger") == "evm" {
        return withdrawal_demo::run(matches);
    }
    logging::start(text("log"));
    let options = options(matches)?;
    let json = matches.get_flag("json");
    if !json {
        introduce(&options);
    }
    let rewrite = std::io::stderr().is_terminal() && text("log") == "off";
    let report = demonstrate(&options, |progress| {
        if !json {
            show(progress, rewrite);
        }
    });
    if !json && rewrite {
        say_aside("");
    }
    let report = report?;
    if json {
        say(serde_json::to_string(&report)?);
    } else {
        say(format_args!("\n{report}"));
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn options(matches: &ArgMatches) -> Result<DemoOptions, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let count = |name: &str| matches.get_one::<u32>(name).map(|count| *count as usize);
    let kind = match text("ledger") {
        "sawtooth" => SimulatedLedger::Sawtooth,
        _ => SimulatedLedger::Scabbard,
    };
    let usual = DemoOptions::new(kind);
    Ok(DemoOptions {
        services: count("services").unwrap_or(usual.services),
        batches: count("batches").unwrap_or(usual.batches),
        faults: match text("faults") {
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
        ..usual
    })
}

fn introduce(options: &DemoOptions) {
    let DemoOptions { ledger, services, batches, faults, .. } = options;
    let plural = if *services == 1 { "service" } else { "services" };
    let database = match &options.database {
        Some(url) => url.to_string(),
        None => "an SQLite file".to_owned(),
    };
    say_aside(format_args!(
        "{batches} batches for {services} {plural} of a simulated {} ledger, faults: {}, stored in \
         {database}.",
        ledger.as_str(),
        faults.as_str(),
    ));
}

fn show(progress: &DemoProgress, rewrite: bool) {
    if rewrite {
        // Where nobody looks any more, the work goes on.
        let _ = write!(std::io::stderr(), "\r{progress}");
    } else {
        say_aside(progress);
    }
}
