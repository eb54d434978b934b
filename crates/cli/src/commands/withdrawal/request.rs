//! `withdrawal request`: has a running server pay from a pool.

use std::{process::ExitCode, thread, time::Duration};

use clap::Args;
use serde_json::{Value, json};

use super::{amount, list, name::path_of};
use crate::commands::{
    arguments::RemoteArgs,
    exit::Exit,
    failure::Failure,
    key,
    print::{print_stderr, print_stdout},
    remote::{Retries, Server, TimeoutArg, field},
};

/// Requests a withdrawal from a pool, and prints its id once it is stored
///
/// While the server is busy, the request is repeated.
///
/// Exit codes are those of `grid-batch submit`. If the server does not answer (4), it may have stored the withdrawal:
/// repeat the request with the printed idempotency key, and it pays once.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// The pool that pays
    #[arg(long, value_name = "ADDRESS")]
    pool: String,
    /// The account that is paid
    #[arg(long, value_name = "ADDRESS")]
    beneficiary: String,
    /// The amount in the smallest unit of the pool's currency; for the chain's coin, also with a unit, such as 1.5ether
    /// or 30gwei
    #[arg(long, value_parser = amount::parse)]
    amount: String,
    /// Requests with the same key are one withdrawal [default: a random key]
    #[arg(long, value_name = "TEXT")]
    idempotency_key: Option<String>,
    /// Wait until the withdrawal is made or has failed
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    timeout: TimeoutArg,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(super) fn run(args: &RequestArgs) -> Result<ExitCode, Failure> {
    let server = Server::of(&args.remote.server)?;
    let retries = args.timeout.retries();
    let stored = request(args, &server, retries)?;
    if !args.wait {
        return Ok(args.remote.output.show(&stored, || print_stdout(field(&stored, "id"))));
    }
    let withdrawal = wait(&server, stored, retries)?;
    args.remote.output.show(&withdrawal, || {
        print_stdout(format_args!("{} {}", field(&withdrawal, "id"), list::state(&withdrawal)));
    });
    let exit = match field(&withdrawal, "state").as_str() {
        "withdrawn" => Exit::Done,
        "failed" => Exit::Failed,
        _ => Exit::TimedOut,
    };
    Ok(exit.into())
}

/// Sends the request until it is answered. It always has a key, so that a repetition pays once.
fn request(args: &RequestArgs, server: &Server, retries: Retries) -> Result<Value, Failure> {
    let key = args.idempotency_key.clone().map_or_else(random_key, Ok)?;
    let fields = json!({
        "pool": args.pool,
        "beneficiary": args.beneficiary,
        "amount": args.amount,
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
    let bytes = key::random_bytes().map_err(Failure::new)?;
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
