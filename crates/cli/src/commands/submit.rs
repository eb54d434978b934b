//! `submit`: hands lists of batches to a running server.

use std::{
    io::{IsTerminal, Read, stderr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use grid_batch_client::{AcceptedBatch, BatchStatus};
use grid_batch_core::ItemId;
use grid_batch_protocol::CylinderToken;
use serde_json::{Value, json};

use crate::commands::{
    arguments::RemoteArgs,
    exit::Exit,
    failure::Failure,
    input, key,
    print::{print_stderr, print_stdout},
    remote::{ProgressLine, Retries, Server, TimeoutArg},
};

/// Submits lists of batches to a running server
///
/// Sends one request for each file, and prints the id of each batch once it is stored. While the server is busy, the
/// request is repeated.
///
/// Exit codes: 0 if all batches are stored or, with --wait, committed; 1 if one is invalid or refused; 2 for wrong
/// arguments; 3 if --timeout has passed; 4 if the server does not answer. A batch can be submitted again without harm,
/// unless --new is given.
#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// Files with lists of batches, as `batch make` writes them; - for standard input
    #[arg(required = true)]
    file: Vec<String>,
    /// The service that gets the batches [default: the ledger's only one]
    #[arg(long, value_name = "SERVICE")]
    service: Option<String>,
    /// A text to find the batches by
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Declares that the ledger has never committed the batches; without it, a Scabbard batch that is not proved to be
    /// new is held
    #[arg(long)]
    new: bool,
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "token_file",
        help = "File with a secret key that the Splinter node accepts, as `key new` writes it; for a \
                server with access.mode = ledger_keys"
    )]
    key: Option<PathBuf>,
    /// Wait until all batches have ended
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    timeout: TimeoutArg,
    #[command(flatten)]
    remote: RemoteArgs,
}

pub(crate) fn run(args: &SubmitArgs) -> Result<ExitCode, Failure> {
    let token = match &args.key {
        Some(file) => Some(format!("Cylinder:{}", CylinderToken::new(&key::read(file)?).as_str())),
        None => None,
    };
    let server = Server::with_token(&args.remote.server, token)?;
    let submission = SubmitRequest { server, args, retries: args.timeout.retries() };
    let mut submitted = Vec::new();
    let mut progress = ProgressLine::start();
    for (number, file) in args.file.iter().enumerate() {
        progress.show(number, args.file.len(), "files are submitted");
        submitted.extend(submission.submit(file)?);
    }
    drop(progress);
    if !args.wait {
        submission.print_submitted(&submitted);
        return Ok(ExitCode::SUCCESS);
    }
    let statuses = submission.wait(&submitted)?;
    submission.print_statuses(&statuses);
    let exit = if statuses.iter().any(BatchStatus::is_invalid) {
        Exit::Failed
    } else if statuses.iter().all(BatchStatus::has_ended) {
        Exit::Done
    } else {
        Exit::TimedOut
    };
    Ok(exit.into())
}

struct SubmitRequest<'a> {
    server: Server,
    args: &'a SubmitArgs,
    retries: Retries,
}

impl SubmitRequest<'_> {
    fn submit(&self, file: &str) -> Result<Vec<AcceptedBatch>, Failure> {
        let mut list = Vec::new();
        let read = input::open(file).and_then(|mut input| input.read_to_end(&mut list));
        read.map_err(|error| Failure::new(format!("cannot read {file}: {error}")))?;
        let SubmitArgs { service, label, new, .. } = self.args;
        let (service, label) = (service.as_deref(), label.as_deref());
        let submit = || self.server.client.submit(&list, service, label, *new);
        let submitted = self.retries.run(submit);
        submitted.map_err(|error| Failure::from(error).about(file))
    }

    /// Waits for the batches, in the order in which they were submitted.
    fn wait(&self, submitted: &[AcceptedBatch]) -> Result<Vec<BatchStatus>, Failure> {
        /// The maximum number of batches in a request.
        const PART: usize = 100;
        let ids: Vec<ItemId> = submitted.iter().map(|batch| batch.id).collect();
        let mut statuses = Vec::new();
        let mut progress = ProgressLine::start();
        for part in ids.chunks(PART) {
            let before = statuses.len();
            let show = |ended| progress.show(before + ended, ids.len(), "batches have ended");
            statuses.extend(self.wait_for(part, show)?);
        }
        Ok(statuses)
    }

    /// Waits for the batches of one request, and reports how many have ended.
    fn wait_for(
        &self,
        ids: &[ItemId],
        mut show: impl FnMut(usize),
    ) -> Result<Vec<BatchStatus>, Failure> {
        const SECOND: Duration = Duration::from_secs(1);
        let (client, service) = (&self.server.client, self.args.service.as_deref());
        let longest = if stderr().is_terminal() { SECOND } else { Duration::MAX };
        loop {
            let left = self.retries.left();
            let wait = (left >= SECOND).then_some(left.min(longest));
            let statuses = self.retries.run(|| client.statuses(ids, service, wait))?;
            let ended = statuses.iter().filter(|status| status.has_ended()).count();
            show(ended);
            if wait.is_none() || ended == statuses.len() {
                return Ok(statuses);
            }
        }
    }

    fn print_submitted(&self, submitted: &[AcceptedBatch]) {
        let batch =
            |it: &AcceptedBatch| json!({"id": it.id.to_string(), "service_id": it.service_id});
        let batches: Vec<Value> = submitted.iter().map(batch).collect();
        self.args.remote.output.show_list("batches", &batches, || {
            submitted.iter().for_each(|batch| print_stdout(batch.id));
        });
    }

    fn print_statuses(&self, statuses: &[BatchStatus]) {
        let batches: Vec<Value> = statuses.iter().map(|status| status.json.clone()).collect();
        self.args.remote.output.show_list("batches", &batches, || {
            statuses.iter().for_each(print_status);
            let open = statuses.iter().filter(|status| !status.has_ended()).count();
            if open > 0 {
                print_stderr(format_args!(
                    "grid-batch: {open} of {} batches have not ended; `grid-batch explain BATCH` tells why one waits",
                    statuses.len()
                ));
            }
        });
    }
}

fn print_status(status: &BatchStatus) {
    let error = status.error().filter(|_| !status.is_committed());
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    print_stdout(format_args!("{} {}{error}", status.id, status.status.to_lowercase()));
}
