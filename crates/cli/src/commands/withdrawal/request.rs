//! `withdrawal request`: has a running server pay from a pool.

use std::{process::ExitCode, thread, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command, builder::ValueParser};
use serde_json::{Value, json};

use super::{amount, list, name::path_of};
use crate::commands::{
    exit::Exit,
    failure::Failure,
    operator::{print_json, wants_json},
    print::{print_stderr, print_stdout},
    remote::{self, Retries, Server, field, timeout_flag},
};

pub(super) fn command() -> Command {
    let required = |name: &'static str| Arg::new(name).long(name).required(true);
    Command::new("request")
        .about("Requests a withdrawal from a pool, and prints its id once it is stored")
        .long_about(
            "Requests a withdrawal from a pool, and prints its id once it is stored. While the server is busy, \
             the request is repeated.\n\n\
             Exit codes are those of `grid-batch submit`. If the server does not answer (4), it may have stored \
             the withdrawal: repeat the request with the printed idempotency key, and it pays once.",
        )
        .arg(required("pool").value_name("ADDRESS").help("The pool that pays"))
        .arg(required("beneficiary").value_name("ADDRESS").help("The account that is paid"))
        .arg(
            required("amount")
                .value_name("AMOUNT")
                .value_parser(ValueParser::new(amount::parse))
                .help(
                    "The amount in the smallest unit of the pool's currency; for the chain's coin, also with a unit, such \
                     as 1.5ether or 30gwei",
                ),
        )
        .arg(
            Arg::new("idempotency-key")
                .long("idempotency-key")
                .value_name("TEXT")
                .help("Requests with the same key are one withdrawal [default: a random key]"),
        )
        .arg(
            Arg::new("wait")
                .long("wait")
                .action(ArgAction::SetTrue)
                .help("Wait until the withdrawal is made or has failed"),
        )
        .arg(timeout_flag())
        .args(remote::flags())
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let retries = Retries::of(matches);
    let stored = request(matches, &server, retries)?;
    if !matches.get_flag("wait") {
        if wants_json(matches) {
            print_json(&stored);
        } else {
            print_stdout(field(&stored, "id"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let withdrawal = wait(&server, stored, retries)?;
    if wants_json(matches) {
        print_json(&withdrawal);
    } else {
        print_stdout(format_args!("{} {}", field(&withdrawal, "id"), list::state(&withdrawal)));
    }
    let exit = match field(&withdrawal, "state").as_str() {
        "withdrawn" => Exit::Done,
        "failed" => Exit::Failed,
        _ => Exit::TimedOut,
    };
    Ok(exit.into())
}

/// Sends the request until it is answered. It always has a key, so that a repetition pays once.
fn request(matches: &ArgMatches, server: &Server, retries: Retries) -> Result<Value, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let key = text("idempotency-key").map_or_else(random_key, Ok)?;
    let fields = json!({
        "pool": text("pool"),
        "beneficiary": text("beneficiary"),
        "amount": text("amount"),
        "idempotency_key": key,
    });
    let stored = retries.run(|| server.client.post("/withdrawals", &[], &fields));
    stored.map_err(|error| {
        let failure = Failure::from(error);
        if failure.is_unreachable() {
            print_stderr(format_args!(
                "grid-batch: the withdrawal may be stored; to repeat the request, give --idempotency-key '{key}'"
            ));
        }
        failure
    })
}

fn random_key() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(format!("the system has no random numbers: {error}")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Reads the withdrawal until it has ended or the time has passed.
fn wait(server: &Server, stored: Value, retries: Retries) -> Result<Value, Failure> {
    const PAUSE: Duration = Duration::from_millis(500);
    let path = path_of(&field(&stored, "id"));
    let mut withdrawal = stored;
    while withdrawal["ended_at"].is_null() && !retries.left().is_zero() {
        thread::sleep(PAUSE.min(retries.left()));
        withdrawal = retries.run(|| server.client.get(&path, &[]))?;
    }
    Ok(withdrawal)
}
