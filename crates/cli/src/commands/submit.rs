//! `submit`: hands lists of batches to a running server.

use std::{
    fs,
    io::{self, IsTerminal, Read, stderr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Arg, ArgAction, ArgMatches, Command};
use grid_batch_client::{AcceptedBatch, BatchStatus};
use grid_batch_core::ItemId;
use grid_batch_protocol::CylinderToken;
use serde_json::json;

use crate::commands::{
    exit::Exit,
    failure::Failure,
    key,
    operator::{print_json, wants_json},
    print::{print_stderr, print_stdout},
    remote::{self, ProgressLine, Retries, Server, timeout_flag},
};

pub(crate) fn command() -> Command {
    Command::new("submit")
        .about("Submits lists of batches to a running server")
        .long_about(
            "Submits lists of batches to a running server, one request for each file, and prints the id of each \
             batch once it is stored. While the server is busy, the request is repeated.\n\n\
             Exit codes: 0 if all batches are stored or, with --wait, committed; 1 if one is invalid or refused; \
             2 for wrong arguments; 3 if --timeout has passed; 4 if the server does not answer. A batch can be \
             submitted again without harm, unless --new is given.",
        )
        .arg(
            Arg::new("file")
                .required(true)
                .num_args(1..)
                .value_name("FILE")
                .help("Files with lists of batches, as `grid-batch batch make` writes them; - for standard input"),
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("SERVICE")
                .help("The service that gets the batches [default: the ledger's only one]"),
        )
        .arg(
            Arg::new("label")
                .long("label")
                .value_name("TEXT")
                .help("A text to find the batches by"),
        )
        .arg(Arg::new("new").long("new").action(ArgAction::SetTrue).help(
            "Declares that the ledger has never committed the batches; without it, a Scabbard batch that is not \
             proved to be new is held",
        ))
        .arg(
            Arg::new("key")
                .long("key")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .conflicts_with("token-file")
                .help(
                    "File with a secret key that the Splinter node accepts, as `grid-batch key new` writes it; for a \
                     server with access.mode = ledger_keys",
                ),
        )
        .arg(
            Arg::new("wait")
                .long("wait")
                .action(ArgAction::SetTrue)
                .help("Wait until all batches have ended"),
        )
        .arg(timeout_flag())
        .args(remote::flags())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = match matches.get_one::<PathBuf>("key") {
        Some(file) => {
            let token = CylinderToken::new(&key::read(file)?);
            Server::with_token(matches, format!("Cylinder:{}", token.as_str()))?
        }
        None => Server::of(matches)?,
    };
    let submission = SubmitRequest { server, matches, retries: Retries::of(matches) };
    let mut submitted = Vec::new();
    let files: Vec<_> = matches.get_many::<String>("file").into_iter().flatten().collect();
    let mut progress = ProgressLine::start();
    for (number, file) in files.iter().enumerate() {
        progress.show(number, files.len(), "files are submitted");
        submitted.extend(submission.submit(file)?);
    }
    drop(progress);
    if !matches.get_flag("wait") {
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
    matches: &'a ArgMatches,
    retries: Retries,
}

impl SubmitRequest<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.matches.get_one::<String>(name).map(String::as_str)
    }

    fn submit(&self, file: &str) -> Result<Vec<AcceptedBatch>, Failure> {
        let list =
            read(file).map_err(|error| Failure::new(format!("cannot read {file}: {error}")))?;
        let client = &self.server.client;
        let (service, label) = (self.text("service"), self.text("label"));
        let is_new = self.matches.get_flag("new");
        let submitted = self.retries.run(|| client.submit(&list, service, label, is_new));
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
        let client = &self.server.client;
        let longest = if stderr().is_terminal() { SECOND } else { Duration::MAX };
        loop {
            let left = self.retries.left();
            let wait = (left >= SECOND).then_some(left.min(longest));
            let statuses = self.retries.run(|| client.statuses(ids, self.text("service"), wait))?;
            let ended = statuses.iter().filter(|status| status.has_ended()).count();
            show(ended);
            if wait.is_none() || ended == statuses.len() {
                return Ok(statuses);
            }
        }
    }

    fn print_submitted(&self, submitted: &[AcceptedBatch]) {
        if wants_json(self.matches) {
            let batch =
                |it: &AcceptedBatch| json!({"id": it.id.to_string(), "service_id": it.service_id});
            return print_json(
                &json!({"batches": submitted.iter().map(batch).collect::<Vec<_>>()}),
            );
        }
        submitted.iter().for_each(|batch| print_stdout(batch.id));
    }

    fn print_statuses(&self, statuses: &[BatchStatus]) {
        if wants_json(self.matches) {
            let batches: Vec<_> = statuses.iter().map(|status| status.json.clone()).collect();
            return print_json(&json!({"batches": batches}));
        }
        for status in statuses {
            let error = status.error().filter(|_| !status.is_committed());
            let error = error.map(|error| format!(": {error}")).unwrap_or_default();
            print_stdout(format_args!("{} {}{error}", status.id, status.status.to_lowercase()));
        }
        let open = statuses.iter().filter(|status| !status.has_ended()).count();
        if open > 0 {
            print_stderr(format_args!(
                "grid-batch: {open} of {} batches have not ended; `grid-batch explain` shows why one waits",
                statuses.len()
            ));
        }
    }
}

fn read(file: &str) -> io::Result<Vec<u8>> {
    match file {
        "-" => {
            let mut list = Vec::new();
            io::stdin().read_to_end(&mut list).map(|_| list)
        }
        file => fs::read(file),
    }
}
