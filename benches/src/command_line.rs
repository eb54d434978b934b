//! The command line.

use std::{env, path::PathBuf, str::FromStr, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::{
    arrangement::Arrangement,
    comparison::Comparison,
    database::DatabaseKind,
    ledger::LedgerKind,
    run_options::{LedgerProgram, RunOptions},
};

/// The command line of the program.
pub fn command() -> Command {
    Command::new("grid-batch-bench")
        .about("Measures the server from outside: one end-to-end run")
        .args_override_self(true)
        .args_conflicts_with_subcommands(true)
        .args(run_arguments())
        .subcommand(
            Command::new("table")
                .about("Runs the table of docs/performance.md: medians of several rounds")
                .args([
                    server_argument(),
                    Arg::new("json").long("json").action(ArgAction::SetTrue),
                    number("rounds", "3"),
                    Arg::new("full")
                        .long("full")
                        .action(ArgAction::SetTrue)
                        .help("Up to 100,000 services, payloads of 1 MB and 8 instances; an hour"),
                    Arg::new("quick")
                        .long("quick")
                        .action(ArgAction::SetTrue)
                        .help("A twentieth of the batches, one round"),
                ]),
        )
        .subcommand(
            Command::new("compare")
                .about("Compares two programs: CPU a batch by number of services and commit delay")
                .args([
                    program_argument("before"),
                    program_argument("after"),
                    database_argument(),
                    number("rounds", "2"),
                    Arg::new("quick")
                        .long("quick")
                        .action(ArgAction::SetTrue)
                        .help("A twentieth of the batches"),
                ]),
        )
        .subcommand(
            Command::new("backlog")
                .about(
                    "Starts a server with open batches: its memory, and the time to the first POST",
                )
                .arg(number("measured", "10000").help("Batches to commit before the end"))
                .args(run_arguments()),
        )
        .subcommand(
            Command::new("rivals")
                .about("Compares with job queues that keep order per key; see benches/rivals/run")
                .args([
                    server_argument(),
                    Arg::new("scripts")
                        .long("scripts")
                        .required(true)
                        .value_parser(value_parser!(PathBuf))
                        .help("Directory of the scripts that drive the queues"),
                    number("units", "10000,100000").value_delimiter(','),
                    number("rounds", "1"),
                    number("keys", "1000"),
                ]),
        )
        .subcommand(
            Command::new("ledger")
                .about("Runs the ledger alone, until standard input ends; prints its port")
                .args([ledger_argument(), delay_argument()]),
        )
}

fn run_arguments() -> Vec<Arg> {
    vec![
        server_argument(),
        database_argument(),
        ledger_argument(),
        delay_argument(),
        Arg::new("simulator")
            .long("simulator")
            .action(ArgAction::SetTrue)
            .help("The ledger is the simulator of the server's program, not that of the benchmark"),
        number("services", "100"),
        number("batches", "10000"),
        number("connections", "32"),
        number("batches-per-request", "1"),
        number("payload", "200"),
        number("instances", "1"),
        Arg::new("ceilings")
            .long("ceilings")
            .action(ArgAction::SetTrue)
            .help("Measure plain inserts, POSTs and status requests beside it"),
        Arg::new("idle")
            .long("idle")
            .value_name("SECONDS")
            .value_parser(value_parser!(u64))
            .default_value("0")
            .help("Measure the CPU of the server for this long when it has nothing to do"),
        Arg::new("event-sockets")
            .long("event-sockets")
            .value_parser(value_parser!(usize))
            .help("Event sockets of the server; default: one for each service"),
        Arg::new("bursts")
            .long("bursts")
            .action(ArgAction::SetTrue)
            .help("Send the batches of a service in a row, one service after the other"),
        Arg::new("no-events").long("no-events").action(ArgAction::SetTrue),
        Arg::new("events").long("events").action(ArgAction::SetTrue).overrides_with("no-events"),
        Arg::new("set")
            .long("set")
            .action(ArgAction::Append)
            .value_parser(setting)
            .value_name("NAME=VALUE")
            .help("Setting of the server, such as poll.interval=500ms"),
        Arg::new("json").long("json").action(ArgAction::SetTrue),
    ]
}

fn server_argument() -> Arg {
    Arg::new("server")
        .long("server")
        .value_parser(value_parser!(PathBuf))
        .help("Program to measure; default: grid-batch beside this program")
}

fn program_argument(name: &'static str) -> Arg {
    Arg::new(name)
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help(format!("Program {name} a change"))
}

fn database_argument() -> Arg {
    Arg::new("database")
        .long("database")
        .value_parser(["sqlite", "postgres"])
        .default_value("sqlite")
}

fn ledger_argument() -> Arg {
    Arg::new("ledger")
        .long("ledger")
        .value_parser(["scabbard", "sawtooth"])
        .default_value("scabbard")
}

fn delay_argument() -> Arg {
    Arg::new("delay")
        .long("delay")
        .value_name("MILLISECONDS")
        .value_parser(value_parser!(u64))
        .default_value("1")
        .help("Time from the arrival of a batch at the ledger to its commit")
}

fn number(name: &'static str, default: &'static str) -> Arg {
    Arg::new(name).long(name).value_parser(value_parser!(usize)).default_value(default)
}

/// The kind of ledger that the command line names.
pub fn ledger_kind(matches: &ArgMatches) -> LedgerKind {
    match text(matches, "ledger") {
        "sawtooth" => LedgerKind::Sawtooth,
        _ => LedgerKind::Scabbard,
    }
}

/// The ledger's delay that the command line names.
pub fn delay(matches: &ArgMatches) -> Duration {
    Duration::from_millis(matches.get_one("delay").copied().unwrap_or_default())
}

/// The options of a run.
pub fn run_options(matches: &ArgMatches) -> RunOptions {
    let number = |name: &str| *matches.get_one::<usize>(name).unwrap();
    RunOptions {
        server: server(matches),
        database: database_kind(matches),
        ledger: ledger_kind(matches),
        delay: delay(matches),
        services: number("services").max(1),
        batches: number("batches"),
        arrangement: if matches.get_flag("bursts") {
            Arrangement::Bursts
        } else {
            Arrangement::Interleaved
        },
        connections: number("connections").max(1),
        batches_per_request: number("batches-per-request").max(1),
        payload: number("payload"),
        events: !matches.get_flag("no-events"),
        event_sockets: matches.get_one("event-sockets").copied(),
        settings: settings(matches),
        instances: number("instances").max(1),
        ledger_program: if matches.get_flag("simulator") {
            LedgerProgram::Simulator
        } else {
            LedgerProgram::Own
        },
        ceilings: matches.get_flag("ceilings"),
        idle: Duration::from_secs(matches.get_one("idle").copied().unwrap_or_default()),
    }
}

/// What the command `compare` compares.
pub fn comparison(matches: &ArgMatches) -> Comparison {
    let program = |name: &str| matches.get_one::<PathBuf>(name).cloned().unwrap_or_default();
    Comparison {
        programs: ["before", "after"].map(program),
        database: database_kind(matches),
        rounds: matches.get_one("rounds").copied().unwrap_or(1).max(1),
        quick: matches.get_flag("quick"),
    }
}

fn database_kind(matches: &ArgMatches) -> DatabaseKind {
    DatabaseKind::from_str(text(matches, "database")).unwrap()
}

/// The program to measure.
pub fn server(matches: &ArgMatches) -> PathBuf {
    let beside_this_program = || env::current_exe().unwrap().with_file_name("grid-batch");
    matches.get_one("server").cloned().unwrap_or_else(beside_this_program)
}

fn settings(matches: &ArgMatches) -> Vec<(String, String)> {
    matches.get_many("set").into_iter().flatten().cloned().collect()
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}
