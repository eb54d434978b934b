use std::{
    fs,
    io::{self, IsTerminal, Read, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use grid_batch_core::Hex;
use grid_batch_protocol::{Batch, BatchList, Message};

use super::{
    description::{BatchJson, Description, PayloadJson, TransactionJson},
    intkey::Intkey,
};
use crate::commands::{failure::Failure, key, print::print_stderr};

pub(super) fn command() -> Command {
    let many = |name: &'static str, value: &'static str| {
        Arg::new(name).long(name).value_name(value).action(ArgAction::Append)
    };
    Command::new("make")
        .about("Makes a list of signed batches, as `grid-batch submit` takes it")
        .long_about(
            "Makes a list of signed batches, as `grid-batch submit` takes it.\n\n\
             The batches come from a JSON file, or the flags describe one batch. A JSON file has a batch or an array \
             of batches:\n\n  \
             {\"transactions\": [{\"family\": \"intkey\", \"version\": \"1.0\",\n    \
             \"inputs\": [\"1cf126…\"], \"outputs\": [\"1cf126…\"], \"dependencies\": [],\n    \
             \"payload\": {\"cbor\": {\"Verb\": \"set\", \"Name\": \"a\", \"Value\": 5}}}]}\n\n\
             A payload is {\"cbor\": …}, {\"text\": \"…\"} or {\"base64\": \"…\"}.",
        )
        .arg(
            Arg::new("key")
                .long("key")
                .value_name("FILE")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .help("File with the secret key that signs, as `grid-batch key new` makes it"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("File for the list [default: standard output]"),
        )
        .arg(Arg::new("json").long("json").value_name("FILE").help("The batches as JSON; - for standard input"))
        .arg(
            many("intkey", "TEXT")
                .value_parser(|text: &str| text.parse::<Intkey>())
                .help("A transaction of intkey, such as 'set a 5'; can be repeated for one batch"),
        )
        .arg(Arg::new("family").long("family").value_name("NAME").requires("version").help("The transaction family"))
        .group(ArgGroup::new("source").args(["json", "intkey", "family"]).required(true))
        .arg(Arg::new("version").long("version").value_name("TEXT").requires("family").help("The version of the family"))
        .arg(many("input", "ADDRESS").requires("family").help("An address that the transaction may read"))
        .arg(many("output-address", "ADDRESS").requires("family").help("An address that the transaction may write"))
        .arg(many("dependency", "ID").requires("family").help("A transaction that must be applied before"))
        .arg(Arg::new("nonce").long("nonce").value_name("TEXT").requires("family").help("Distinguishes transactions with the same content [default: a random one]"))
        .arg(Arg::new("payload").long("payload").value_name("TEXT").requires("family").help("The payload as text"))
        .arg(Arg::new("payload-file").long("payload-file").value_name("FILE").requires("family").conflicts_with("payload").value_parser(clap::value_parser!(PathBuf)).help("File with the payload"))
        .arg(Arg::new("cbor").long("cbor").value_name("JSON").requires("family").conflicts_with_all(["payload", "payload-file"]).help("The payload as JSON, which is encoded as CBOR"))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let key_file: &PathBuf =
        matches.get_one("key").ok_or_else(|| Failure::new("--key is missing"))?;
    let key = key::read(key_file)?;
    let nonce =
        || random_nonce().map_err(|error| format!("the system has no random numbers: {error}"));
    let sign = |batch: BatchJson| batch.sign(&key, nonce).map_err(Failure::new);
    let batches = batches(matches)?.into_iter().map(sign).collect::<Result<Vec<Batch>, _>>()?;
    write(matches.get_one("output"), &batches)?;
    Ok(ExitCode::SUCCESS)
}

fn batches(matches: &ArgMatches) -> Result<Vec<BatchJson>, Failure> {
    if let Some(file) = matches.get_one::<String>("json") {
        let text = read_text(file)?;
        let description: Description = text.parse().map_err(|error| {
            Failure::new(format!("{} describes no batches: {error}", shown(file)))
        })?;
        return Ok(description.0);
    }
    let transactions = match matches.get_many::<Intkey>("intkey") {
        Some(all) => all.map(Intkey::transaction).collect(),
        None => vec![of_flags(matches)?],
    };
    Ok(vec![BatchJson { transactions }])
}

fn of_flags(matches: &ArgMatches) -> Result<TransactionJson, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let texts =
        |name: &str| matches.get_many::<String>(name).into_iter().flatten().cloned().collect();
    let payload =
        match (text("payload"), matches.get_one::<PathBuf>("payload-file"), text("cbor")) {
            (Some(text), ..) => PayloadJson::Text(text),
            (_, Some(file), _) => PayloadJson::Bytes(fs::read(file).map_err(|error| {
                Failure::new(format!("cannot read {}: {error}", file.display()))
            })?),
            (.., Some(json)) => PayloadJson::Cbor(
                serde_json::from_str(&json)
                    .map_err(|error| Failure::new(format!("--cbor is not JSON: {error}")))?,
            ),
            (None, None, None) => PayloadJson::default(),
        };
    Ok(TransactionJson {
        inputs: texts("input"),
        outputs: texts("output-address"),
        dependencies: texts("dependency"),
        nonce: text("nonce"),
        payload,
        ..TransactionJson::new(
            &text("family").unwrap_or_default(),
            &text("version").unwrap_or_default(),
        )
    })
}

fn read_text(file: &str) -> Result<String, Failure> {
    let read = match file {
        "-" => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        file => fs::read_to_string(file),
    };
    read.map_err(|error| Failure::new(format!("cannot read {}: {error}", shown(file))))
}

fn shown(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

/// Prints the ids to an output that does not contain the list.
fn write(output: Option<&PathBuf>, batches: &[Batch]) -> Result<(), Failure> {
    let list = BatchList { batches: batches.to_vec() }.encode_to_vec();
    match output {
        Some(file) => fs::write(file, list)
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))?,
        None if io::stdout().is_terminal() => {
            return Err(Failure::new(
                "the list is not text: name a file with --output, or send it to a program",
            ));
        }
        None => io::stdout().write_all(&list)?,
    }
    batches.iter().for_each(|batch| print_stderr(&batch.header_signature));
    Ok(())
}

fn random_nonce() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(Hex(&bytes).to_string())
}
