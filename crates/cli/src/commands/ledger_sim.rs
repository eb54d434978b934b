use std::{path::PathBuf, process::ExitCode, str::FromStr, sync::Arc, time::Duration};

use clap::Args;
use grid_batch_core::ServiceScopeId;
use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder, When};
use grid_batch_service::LogFormat;

use crate::commands::{
    arguments::parse_duration, failure::Failure, flags::log_filter, logging, print::print_stdout,
    signals,
};

/// Runs a simulated ledger on a local port, until SIGINT or SIGTERM
#[derive(Debug, Args)]
pub(crate) struct LedgerSimArgs {
    /// Kind of ledger
    #[arg(value_name = "sawtooth|scabbard", value_parser = ["sawtooth", "scabbard"])]
    kind: String,
    /// Port to listen on; 0 chooses a free one
    #[arg(long, default_value = "8008")]
    port: u16,
    #[arg(long, help = "Service of the scabbard ledger, as circuit::service; may be repeated")]
    service: Vec<ServiceScopeId>,
    /// File for the ledger's record; an existing record is continued
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// How long a batch is pending
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    pending_for: Duration,
    /// How long a batch is valid before it is committed
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    valid_for: Duration,
    #[arg(long, value_name = "NAME=PROBABILITY", help = fault_help())]
    fault: Vec<FaultProbability>,
    /// Seed of the random numbers, to repeat a run
    #[arg(long)]
    seed: Option<u64>,
    /// Log level: off, error, warn, info, debug or trace
    #[arg(long, value_parser = log_filter, default_value = "info")]
    log: String,
}

fn fault_help() -> String {
    format!("Fault and its probability, from 0 to 1: {}", fault_names())
}

pub(crate) fn run(args: &LedgerSimArgs) -> Result<ExitCode, Failure> {
    logging::start(&args.log, LogFormat::Text, 0)?;
    let (_, shutdown) = signals::shutdown_channel(Arc::default())?;
    let ledger = builder(args)?.start()?;
    print_stdout(format_args!("The ledger is at {} (seed {})", ledger.url(), ledger.seed()));
    shutdown.recv()?;
    print_stdout(format_args!("Batches executed: {}", ledger.record().len()));
    Ok(ExitCode::SUCCESS)
}

fn builder(args: &LedgerSimArgs) -> Result<LedgerSimBuilder, Failure> {
    let mut builder = match args.kind.as_str() {
        "sawtooth" if !args.service.is_empty() => {
            return Err(Failure::new("a sawtooth ledger has no services; leave --service out"));
        }
        "sawtooth" => LedgerSim::sawtooth(),
        _ if args.service.is_empty() => {
            return Err(Failure::new("a scabbard ledger needs a --service, as circuit::service"));
        }
        _ => LedgerSim::scabbard(args.service.clone()),
    };
    builder = builder.port(args.port).pending_for(args.pending_for).valid_for(args.valid_for);
    if let Some(seed) = args.seed {
        builder = builder.seed(seed);
    }
    if let Some(file) = &args.record {
        builder = builder.record_to(file.clone());
    }
    for FaultProbability(fault, probability) in &args.fault {
        builder = builder.fault(*fault, When::Sometimes(*probability));
    }
    Ok(builder)
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
