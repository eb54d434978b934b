//! `transaction send`: has a running server sign and send a transaction.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::argument::{parse_argument, parse_key};
use crate::commands::{
    amount,
    arguments::RemoteArgs,
    failure::Failure,
    print::print_stdout,
    remote::{
        Retries, Server, TRANSACTIONS, TimeoutArg, given_fields, id_and_state,
        random_idempotency_key,
    },
};

/// Sends a transaction of a gas admin, and prints its id and state once it is stored
///
/// It transfers --value, calls a contract with --call or --data, pays with --pay, or creates a contract from --data
/// without --to. While the server is busy, the request is repeated.
///
/// Exit codes are those of `submit`. If the server does not answer (4), it may have stored the transaction:
/// repeat the command with the printed key, and it is sent once.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The gas admin that signs: its name, its address or its service
    #[arg(long, value_name = "NAME")]
    account: String,
    /// The address that is called or paid
    #[arg(long, value_name = "ADDRESS", required_unless_present = "data")]
    to: Option<String>,
    /// How much is transferred, in wei or with a unit, such as 1.5ether or 30gwei
    #[arg(long, value_name = "WEI", value_parser = amount::parse)]
    value: Option<String>,
    /// The data of the call, or the code of the new contract: 0x and hex digits
    #[arg(long, value_name = "HEX", conflicts_with = "call")]
    data: Option<String>,
    /// The function that is called, such as transfer(address,uint256)
    #[arg(long, value_name = "SIGNATURE")]
    call: Option<String>,
    /// An argument of the function; may be given several times. Arrays, true and false are written as in JSON
    #[arg(
        long,
        value_name = "VALUE",
        requires = "call",
        allow_negative_numbers = true,
        value_parser = parse_argument
    )]
    argument: Vec<Value>,
    /// Pays this amount to --to: in the smallest unit, or a number of coins with a unit
    #[arg(
        long,
        value_name = "AMOUNT",
        requires = "to",
        conflicts_with_all = ["value", "data", "call"],
        value_parser = amount::parse
    )]
    pay: Option<String>,
    /// The ERC-20 token that is paid [default: the chain's coin]
    #[arg(long, value_name = "ADDRESS", requires = "pay")]
    token: Option<String>,
    /// The gas limit [default: an estimate]
    #[arg(long, value_name = "NUMBER")]
    gas_limit: Option<u64>,
    /// The highest gas price at which it is sent [default: the server's]
    #[arg(long, value_name = "GWEI")]
    maximum_gas_price: Option<String>,
    /// It fails if it is not signed by then, such as 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
    /// A text to find the transaction by
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// An event or error of the contract, as Solidity declares it, to decode the result; may be given several times
    #[arg(long, value_name = "DECLARATION")]
    abi: Vec<String>,
    /// Requests with the same key are one transaction [default: a random key]
    #[arg(long, value_parser = parse_key)]
    key: Option<String>,
    /// Wait until the transaction is final or has failed
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    timeout: TimeoutArg,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(super) fn run(args: &SendArgs) -> Result<ExitCode, Failure> {
    let server = Server::of(&args.remote.server)?;
    let retries = args.timeout.retries();
    let stored = request(args, &server, retries)?;
    if !args.wait {
        return Ok(show(args, &stored));
    }
    let transaction = TRANSACTIONS.wait(&server, stored, retries)?;
    show(args, &transaction);
    Ok(TRANSACTIONS.exit_of(&transaction).into())
}

fn show(args: &SendArgs, transaction: &Value) -> ExitCode {
    args.remote.output.show(transaction, || print_stdout(id_and_state(transaction)))
}

/// Sends the request until it is answered. It always has a key, so that a repetition sends nothing twice.
fn request(args: &SendArgs, server: &Server, retries: Retries) -> Result<Value, Failure> {
    let key = args.key.clone().map_or_else(random_idempotency_key, Ok)?;
    let body = body(args);
    let stored = retries.run(|| server.client.post_once(TRANSACTIONS.path, &key, &body));
    stored.map_err(|error| TRANSACTIONS.not_requested(error, &format!("--key '{key}'")))
}

fn body(args: &SendArgs) -> Value {
    given_fields(json!({
        "account": args.account,
        // A payment names the account that is paid.
        "to": args.to.as_ref().filter(|_| args.pay.is_none()),
        "value": args.value,
        "data": args.data,
        "call": args.call.as_ref().map(|signature| {
            json!({"signature": signature, "arguments": args.argument})
        }),
        "pay": args.pay.as_ref().map(|amount| {
            given_fields(json!({"to": args.to, "amount": amount, "token": args.token}))
        }),
        "gas_limit": args.gas_limit,
        "maximum_gas_price": args.maximum_gas_price,
        "deadline": args.deadline,
        "label": args.label,
        "abi": Some(&args.abi).filter(|abi| !abi.is_empty()),
    }))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        send: SendArgs,
    }

    fn parse(arguments: &str) -> Result<SendArgs, clap::Error> {
        let arguments = format!("send --account treasury {arguments}");
        Program::try_parse_from(arguments.split_whitespace()).map(|program| program.send)
    }

    #[test]
    fn body_has_what_is_given() {
        for (arguments, mut expected) in [
            ("--to 0xa --value 1.5ether", json!({"to": "0xa", "value": "1500000000000000000"})),
            ("--data 0x60", json!({"data": "0x60"})),
            (
                "--to 0xa --call f(int8,bool) --argument -5 --argument true",
                json!({"to": "0xa", "call": {"signature": "f(int8,bool)", "arguments": ["-5", true]}}),
            ),
            (
                "--to 0xa --call f()",
                json!({"to": "0xa", "call": {"signature": "f()", "arguments": []}}),
            ),
            ("--to 0xa --pay 5", json!({"pay": {"to": "0xa", "amount": "5"}})),
            (
                "--to 0xa --pay 5 --token 0xb --gas-limit 21000 --label x --abi a --abi b",
                json!({
                    "pay": {"to": "0xa", "amount": "5", "token": "0xb"},
                    "gas_limit": 21000, "label": "x", "abi": ["a", "b"],
                }),
            ),
            (
                "--to 0xa --maximum-gas-price 30.5 --deadline 2026-12-24T18:00:00Z",
                json!({"to": "0xa", "maximum_gas_price": "30.5", "deadline": "2026-12-24T18:00:00Z"}),
            ),
        ] {
            expected["account"] = "treasury".into();
            assert_eq!(body(&parse(arguments).unwrap()), expected, "{arguments}");
        }
    }

    #[test]
    fn contradicting_arguments_are_refused() {
        for arguments in [
            "",
            "--value 5",
            "--call f()",
            "--pay 5",
            "--to 0xa --token 0xb",
            "--to 0xa --argument 5",
            "--to 0xa --data 0x60 --call f()",
            "--to 0xa --pay 5 --value 5",
            "--to 0xa --pay 5 --call f()",
            "--to 0xa --value -5",
        ] {
            assert!(parse(arguments).is_err(), "{arguments}");
        }
    }
}
