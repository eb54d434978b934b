use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{ArgGroup, Args};
use grid_batch_core::Hex;
use grid_batch_protocol::{Batch, BatchList, Limits, Message, verify_list};
use grid_batch_service::IntakeConfig;

use super::{
    description::{BatchJson, PayloadJson, TransactionJson, read_batches},
    intkey::Intkey,
};
use crate::commands::{failure::Failure, input, key, print::print_stderr};

const ABOUT: &str = "Makes a list of signed batches, as `submit` takes it.

The batches come from a JSON file, or the flags describe one batch. A JSON file has a batch or an array of batches:

  {\"transactions\": [{\"family\": \"intkey\", \"version\": \"1.0\",
    \"inputs\": [\"1cf126…\"], \"outputs\": [\"1cf126…\"], \"dependencies\": [],
    \"payload\": {\"cbor\": {\"Verb\": \"set\", \"Name\": \"a\", \"Value\": 5}}}]}

A payload is {\"cbor\": …}, {\"text\": \"…\"} or {\"base64\": \"…\"}.";

/// Makes a list of signed batches, as `submit` takes it
#[derive(Debug, Args)]
#[command(long_about = ABOUT, group = ArgGroup::new("source").required(true))]
pub(crate) struct MakeArgs {
    /// File with the secret key that signs, as `key new` makes it
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// File for the list [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The batches as JSON; - for standard input
    #[arg(long, value_name = "FILE", group = "source")]
    json: Option<String>,
    /// A transaction of intkey, such as 'set a 5'; can be repeated for one batch
    #[arg(long, value_name = "TEXT", group = "source")]
    intkey: Vec<Intkey>,
    /// The transaction family
    #[arg(long, value_name = "NAME", group = "source", requires = "version")]
    family: Option<String>,
    /// The version of the family
    #[arg(long, value_name = "TEXT", requires = "family")]
    version: Option<String>,
    /// An address that the transaction may read
    #[arg(long, value_name = "ADDRESS", requires = "family")]
    input: Vec<String>,
    /// An address that the transaction may write
    #[arg(long, value_name = "ADDRESS", requires = "family")]
    output_address: Vec<String>,
    /// A transaction that must be applied before
    #[arg(long, value_name = "ID", requires = "family")]
    dependency: Vec<String>,
    /// Distinguishes transactions with the same content [default: a random one]
    #[arg(long, value_name = "TEXT", requires = "family")]
    nonce: Option<String>,
    /// The payload as text
    #[arg(long, value_name = "TEXT", requires = "family")]
    payload: Option<String>,
    /// File with the payload
    #[arg(long, value_name = "FILE", requires = "family", conflicts_with = "payload")]
    payload_file: Option<PathBuf>,
    /// The payload as JSON, which is encoded as CBOR
    #[arg(long, value_name = "JSON", requires = "family", conflicts_with_all = ["payload", "payload_file"])]
    cbor: Option<String>,
}

pub(super) fn run(args: &MakeArgs) -> Result<ExitCode, Failure> {
    let key = key::read(&args.key)?;
    let nonce = || Ok(Hex(&key::random_bytes::<16>()?).to_string());
    let sign = |batch: BatchJson| batch.sign(&key, nonce).map_err(Failure::new);
    let batches = batches(args)?.into_iter().map(sign).collect::<Result<Vec<Batch>, _>>()?;
    write(args.output.as_ref(), &batches)?;
    Ok(ExitCode::SUCCESS)
}

fn batches(args: &MakeArgs) -> Result<Vec<BatchJson>, Failure> {
    if let Some(file) = &args.json {
        let text = read_text(file)?;
        return read_batches(&text).map_err(|error| {
            Failure::new(format!("{} describes no batches: {error}", shown(file)))
        });
    }
    let transactions = if args.intkey.is_empty() {
        vec![of_flags(args)?]
    } else {
        args.intkey.iter().map(Intkey::transaction).collect()
    };
    Ok(vec![BatchJson { transactions }])
}

fn of_flags(args: &MakeArgs) -> Result<TransactionJson, Failure> {
    let payload =
        match (&args.payload, &args.payload_file, &args.cbor) {
            (Some(text), ..) => PayloadJson::Text(text.clone()),
            (_, Some(file), _) => PayloadJson::Bytes(fs::read(file).map_err(|error| {
                Failure::new(format!("cannot read {}: {error}", file.display()))
            })?),
            (.., Some(json)) => PayloadJson::Cbor(
                serde_json::from_str(json)
                    .map_err(|error| Failure::new(format!("--cbor is not JSON: {error}")))?,
            ),
            (None, None, None) => PayloadJson::default(),
        };
    Ok(TransactionJson {
        family: args.family.clone().unwrap_or_default(),
        version: args.version.clone().unwrap_or_default(),
        inputs: args.input.clone(),
        outputs: args.output_address.clone(),
        dependencies: args.dependency.clone(),
        nonce: args.nonce.clone(),
        payload,
    })
}

fn read_text(file: &str) -> Result<String, Failure> {
    let text = input::open(file).and_then(io::read_to_string);
    text.map_err(|error| Failure::new(format!("cannot read {}: {error}", shown(file))))
}

fn shown(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

/// Refuses what a server refuses.
fn check(list: &[u8]) -> Result<(), Failure> {
    verify_list(list, &Limits::default())
        .map_err(|error| Failure::new(format!("a server would refuse the list: {error}")))?;
    let (bytes, limit) = (list.len(), IntakeConfig::body_limit.default);
    if limit.parse::<usize>().is_ok_and(|limit| bytes > limit) {
        print_stderr(format_args!(
            "grid-batch: the list has {bytes} bytes; a server takes up to {limit}, or its intake.body_limit"
        ));
    }
    Ok(())
}

/// Prints the ids to an output that does not contain the list.
fn write(output: Option<&PathBuf>, batches: &[Batch]) -> Result<(), Failure> {
    let list = BatchList { batches: batches.to_vec() }.encode_to_vec();
    check(&list)?;
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
