//! `withdrawal request`: has a running server pay from a pool.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::commands::{
    amount,
    arguments::RemoteArgs,
    failure::Failure,
    print::print_stdout,
    remote::{
        Retries, Server, TimeoutArg, WITHDRAWALS, field, id_and_state, random_idempotency_key,
    },
};

/// Requests a withdrawal from a pool, and prints its id once it is stored
///
/// While the server is busy, the request is repeated.
///
/// Exit codes are those of `submit`. If the server does not answer (4), it may have stored the withdrawal:
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
    let withdrawal = WITHDRAWALS.wait(&server, stored, retries)?;
    args.remote.output.show(&withdrawal, || print_stdout(id_and_state(&withdrawal)));
    Ok(WITHDRAWALS.exit_of(&withdrawal).into())
}

/// Sends the request until it is answered. It always has a key, so that a repetition pays once.
fn request(args: &RequestArgs, server: &Server, retries: Retries) -> Result<Value, Failure> {
    let key = args.idempotency_key.clone().map_or_else(random_idempotency_key, Ok)?;
    let fields = json!({
        "pool": args.pool,
        "beneficiary": args.beneficiary,
        "amount": args.amount,
        "idempotency_key": key,
    });
    let stored = retries.run(|| server.client.post(WITHDRAWALS.path, &[], &fields));
    stored.map_err(|error| WITHDRAWALS.not_requested(error, &format!("--idempotency-key '{key}'")))
}
