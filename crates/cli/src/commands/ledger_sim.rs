use std::{path::PathBuf, process::ExitCode, str::FromStr, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use grid_batch_core::ServiceScopeId;
use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder, When};

use crate::commands::{
    failure::Failure,
    flags::log_filter,
    logging::{self, LogOptions},
    print::print_stdout,
    signals,
};

pub(crate) fn command() -> Command {
    let time =
        |name: &'static str| Arg::new(name).long(name).value_name("TIME").default_value("0s");
    Command::new("ledger-sim")
        .about("Runs a simulated ledger on a local port, until SIGINT or SIGTERM")
        .arg(
            Arg::new("kind")
                .required(true)
                .value_name("sawtooth|scabbard")
                .value_parser(["sawtooth", "scabbard"])
                .help("Kind of ledger"),
        )
        .arg(
            Arg::new("port")
                .long("port")
                .value_parser(value_parser!(u16))
                .default_value("8008")
                .help("Port to listen on; 0 chooses a free one"),
        )
        .arg(
            Arg::new("service")
                .long("service")
                .action(ArgAction::Append)
                .value_parser(value_parser!(ServiceScopeId))
                .help("Service of the scabbard ledger, as circuit::service; may be repeated"),
        )
        .arg(
            Arg::new("record")
                .long("record")
                .value_name("FILE")
                .help("File for the ledger's record; an existing record is continued"),
        )
        .arg(time("pending-for").help("How long a batch is pending"))
        .arg(time("valid-for").help("How long a batch is valid before it is committed"))
        .arg(
            Arg::new("fault")
                .long("fault")
                .value_name("NAME=PROBABILITY")
                .action(ArgAction::Append)
                .value_parser(value_parser!(FaultProbability))
                .help(format!("Fault and its probability, from 0 to 1: {}", fault_names())),
        )
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_parser(value_parser!(u64))
                .help("Seed of the random numbers, to repeat a run"),
        )
        .arg(
            Arg::new("log")
                .long("log")
                .value_parser(log_filter)
                .default_value("info")
                .help("Log level: off, error, warn, info, debug or trace"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let filter = matches.get_one::<String>("log").map_or("info", String::as_str);
    logging::start(LogOptions::all(filter))?;
    let shutdown = signals::shutdown_receiver()?;
    let ledger = builder(matches)?.start()?;
    print_stdout(format_args!("The ledger is at {} (seed {})", ledger.url(), ledger.seed()));
    shutdown.recv()?;
    print_stdout(format_args!("Batches executed: {}", ledger.record().len()));
    Ok(ExitCode::SUCCESS)
}

fn builder(matches: &ArgMatches) -> Result<LedgerSimBuilder, Failure> {
    let kind = matches.get_one::<String>("kind").map_or("", String::as_str);
    let services: Vec<ServiceScopeId> =
        matches.get_many("service").unwrap_or_default().cloned().collect();
    let mut builder = match kind {
        "sawtooth" if !services.is_empty() => {
            return Err(Failure::new("a sawtooth ledger has no services; leave --service out"));
        }
        "sawtooth" => LedgerSim::sawtooth(),
        _ if services.is_empty() => {
            return Err(Failure::new("a scabbard ledger needs a --service, as circuit::service"));
        }
        _ => LedgerSim::scabbard(services),
    };
    builder = builder.port(matches.get_one("port").copied().unwrap_or_default());
    builder = builder.pending_for(time(matches, "pending-for")?);
    builder = builder.valid_for(time(matches, "valid-for")?);
    if let Some(seed) = matches.get_one("seed") {
        builder = builder.seed(*seed);
    }
    if let Some(file) = matches.get_one::<String>("record") {
        builder = builder.record_to(PathBuf::from(file));
    }
    for FaultProbability(fault, probability) in matches.get_many("fault").unwrap_or_default() {
        builder = builder.fault(*fault, When::Sometimes(*probability));
    }
    Ok(builder)
}

fn time(matches: &ArgMatches, name: &str) -> Result<Duration, Failure> {
    let text = matches.get_one::<String>(name).map_or("0s", String::as_str);
    humantime::parse_duration(text)
        .map_err(|error| Failure::new(format!("--{name} is {text:?}: {error}")))
}

/// A fault and its probability.
#[derive(Debug, Clone, Copy)]
struct FaultProbability(Fault, f64);

/// The delay of the faults that are named "late".
const DELAY: Duration = Duration::from_secs(20);

/// The faults and their names on the command line.
const FAULTS: [(&str, Fault); 20] = [
    ("busy", Fault::Busy),
    ("timed-out", Fault::TimedOut),
    ("late-answer", Fault::LateAnswer(DELAY)),
    ("reset-before", Fault::ResetBefore),
    ("reset-after", Fault::ResetAfter),
    ("invalid", Fault::Invalid),
    ("dropped-valid", Fault::DroppedValid),
    ("unauthorized", Fault::Unauthorized),
    ("statuses-fail", Fault::StatusesFail),
    ("late-statuses", Fault::LateStatuses(DELAY)),
    ("statuses-reset", Fault::StatusesReset),
    ("statuses-broken", Fault::StatusesBroken),
    ("statuses-truncated", Fault::StatusesTruncated),
    ("statuses-not-json", Fault::StatusesNotJson),
    ("statuses-wrong-typed", Fault::StatusesWrongTyped),
    ("statuses-huge", Fault::StatusesHuge),
    ("statuses-of-others", Fault::StatusesOfOthers),
    ("events-broken", Fault::EventsBroken),
    ("late-events", Fault::LateEvents(DELAY)),
    ("events-end-with-client", Fault::EventsEndWithClient),
];

fn fault_names() -> String {
    FAULTS.map(|(name, _)| name).join(", ")
}

impl FromStr for FaultProbability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, probability) = text.split_once('=').ok_or("it must be NAME=PROBABILITY")?;
        let (_, fault) = FAULTS.into_iter().find(|(known, _)| *known == name).ok_or_else(|| {
            format!("there is no fault {name:?}; the faults are {}", fault_names())
        })?;
        match probability.parse() {
            Ok(probability) if (0.0..=1.0).contains(&probability) => Ok(Self(fault, probability)),
            _ => Err(format!("{probability:?} is not a number from 0 to 1")),
        }
    }
}
