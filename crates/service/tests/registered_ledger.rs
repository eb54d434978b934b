//! A ledger that a program has registered, in a server of its own.
#![expect(clippy::unwrap_used, reason = "tests unwrap what must succeed")]

use std::{
    fs,
    iter::empty,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_core::future::BoxFuture;
use grid_batch_core::batches::{BatchFormat, LedgerStatus, StatusReport};
use grid_batch_core::evidence::{Evidence, EvidenceReport, UnresolvedBatch};
use grid_batch_core::ledger::{Ledger, LedgerFacts, Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_protocol::TransactFormat;
use grid_batch_service::{
    Config, ConfigError, LedgerContext, LedgerType, RunningServer, Server, StartError, settings,
};
use grid_batch_test_support::{
    batches::{encode_batch_list, signed_batch},
    http::{request, send},
    wait::wait_until,
};

/// The ledger of this process: it applies what it is sent, in order.
static APPLIED: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Memory;

settings! {
    struct MemorySettings in "ledger.memory." {
        /// Network to use.
        network: String = text(""),
    }
}

const MEMORY: LedgerType =
    LedgerType::new("memory", |_| Ok(facts()), open).with_settings(&[MemorySettings::SETTINGS]);

fn facts() -> LedgerFacts {
    LedgerFacts { tells_identity: true, ..LedgerFacts::weakest(Duration::from_secs(1)) }
}

fn open(
    context: &LedgerContext<'_>,
) -> Result<Arc<dyn Ledger>, Box<dyn std::error::Error + Send + Sync>> {
    let MemorySettings { network } = MemorySettings::read(context.settings())?;
    match network.as_str() {
        "test" => Ok(Arc::new(Memory)),
        other => Err(format!("there is no network {other:?}; use \"test\"").into()),
    }
}

fn status(batch_id: &str) -> LedgerStatus {
    if APPLIED.lock().unwrap().iter().any(|applied| applied == batch_id) {
        LedgerStatus::Committed
    } else {
        LedgerStatus::NotReported
    }
}

impl Ledger for Memory {
    fn facts(&self) -> LedgerFacts {
        facts()
    }

    fn format(&self) -> Arc<dyn BatchFormat> {
        Arc::new(TransactFormat::default())
    }

    fn identity<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        Box::pin(async { Ok("memory".to_owned()) })
    }

    fn send<'a>(
        &'a self,
        _node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        APPLIED.lock().unwrap().push(submission.batch_header().to_owned());
        let (outcome, status, message, retry_after) = (Outcome::Accepted, Some(202), None, None);
        Box::pin(async move { SubmissionAnswer { outcome, status, message, retry_after } })
    }

    fn statuses<'a>(
        &'a self,
        _service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        let report = |id: &String| StatusReport {
            batch_id: id.clone(),
            status: status(id),
            receipts: Vec::new(),
        };
        Box::pin(async move { Ok(batch_ids.iter().map(report).collect()) })
    }

    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        let evidence = match status(&batch.batch_id.to_string()) {
            LedgerStatus::Committed => Evidence::Committed,
            _ => Evidence::Inconclusive,
        };
        Box::pin(async move { Ok(evidence.into()) })
    }
}

/// The configuration of a server with this section of its file.
fn load(directory: &Path, section: &str) -> Result<Config, ConfigError> {
    let file = directory.join("grid-batch.toml");
    let database = directory.join("batches.db");
    let text = format!(
        "database = \"sqlite://{}\"\nlisten = \"127.0.0.1:0\"\n\n[access]\nmode = \"none\"\n\n[ledger]\n\
         kind = \"memory\"\nurls = [\"http://memory\"]\n\n[ledger.memory]\n{section}\n",
        database.display()
    );
    fs::write(&file, text).unwrap();
    Config::load_with_ledgers(&[MEMORY], Some(&file), empty(), Vec::new())
}

fn start(directory: &Path, section: &str) -> Result<RunningServer, StartError> {
    Server::start(&load(directory, section).unwrap())
}

/// The message of an error and of its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|source| format!(": {}", chain(source)));
    format!("{error}{}", cause.unwrap_or_default())
}

#[test]
fn batches_are_committed_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path(), "network = \"test\"").unwrap();
    let batches: Vec<_> = (0..5).map(|number| signed_batch("a::b", number)).collect();
    let ids: Vec<_> = batches.iter().map(|batch| batch.batch_id.to_string()).collect();
    let post = request(
        "POST",
        "/batches?service_id=a::b",
        &["content-type: application/octet-stream"],
        &encode_batch_list(&batches),
    );
    let address = server.url().trim_start_matches("http://").parse().unwrap();
    assert_eq!(send(address, &post).unwrap().status, 202);
    wait_until("all batches are committed", || server.counts().committed == 5);
    assert_eq!(*APPLIED.lock().unwrap(), ids);
    server.stop().unwrap();
}

#[test]
fn errors_of_its_settings_name_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let message = load(directory.path(), "netwrk = \"test\"").unwrap_err().to_string();
    assert!(
        message.contains("line 12 of ") && message.contains("ledger.memory.netwrk"),
        "{message}"
    );
    assert!(message.ends_with("did you mean ledger.memory.network?"), "{message}");
    let error = start(directory.path(), "network = \"main\"").unwrap_err();
    let message = chain(&error);
    assert!(error.is_configuration(), "{message}");
    assert!(message.contains("there is no network \"main\""), "{message}");
}
