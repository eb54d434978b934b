//! `explain`: why a batch or a service waits, as a running server explains it.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use grid_batch_client::ClientError;
use serde_json::Value;

use crate::commands::{
    arguments::RemoteArgs,
    failure::Failure,
    operator::{LINE_WIDTH, ServiceSelection, Word},
    print::print_stdout,
    remote::{Server, explanation_lines},
};

/// Explains why a batch, a withdrawal, a transaction or a service waits, and what can be done
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("of").multiple(true).required(true))]
pub(crate) struct ExplainArgs {
    /// Id of a batch, a withdrawal or a transaction, or at least its first 8 characters; or a service or gas admin
    #[arg(value_name = "BATCH|SERVICE", group = "of")]
    batch: Option<Word>,
    /// A service; with BATCH, the batch's service, if several have this id
    #[arg(long, value_name = "SERVICE", group = "of")]
    service: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let server = Server::of(&args.remote.server)?;
    let explanation = match (&args.batch, args.service.as_deref()) {
        (None, service) => server.client.explain_service(service.unwrap_or_default())?,
        (Some(Word::Service(named)), None) => match explain_service(&server, named)? {
            Some(explanation) => explanation,
            None => explain_batch(&server, &Word::Service(named.clone()), None)?,
        },
        (Some(word), service) => explain_batch(&server, word, service)?,
    };
    Ok(args.remote.output.show(&explanation, || {
        explanation_lines(&explanation, LINE_WIDTH).into_iter().for_each(print_stdout);
    }))
}

fn explain_batch(server: &Server, word: &Word, service: Option<&str>) -> Result<Value, Failure> {
    let name = word.batch_name().ok_or_else(|| {
        Failure::usage(
            "there is no such service; to name a batch, give at least 8 characters of its id",
        )
    })?;
    Ok(server.client.explain_batch(&name.prefix, service)?)
}

/// The explanation of a service. `None`: it never had a batch, so the argument may be the id of a batch.
pub(super) fn explain_service(
    server: &Server,
    named: &ServiceSelection,
) -> Result<Option<Value>, Failure> {
    let service = named.one().ok_or_else(|| Failure::usage("name one service"))?;
    match server.client.explain_service(service.as_str()) {
        Err(ClientError::Refused { status: 404, .. })
            if Word::Service(named.clone()).batch_name().is_some() =>
        {
            Ok(None)
        }
        explanation => Ok(Some(explanation?)),
    }
}
