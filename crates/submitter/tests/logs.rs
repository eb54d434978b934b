//! What the submitter logs.
#![expect(clippy::unwrap_used, reason = "tests unwrap what must succeed")]

use std::{
    future::ready,
    sync::{Arc, Mutex},
};

use grid_batch_core::{
    AttemptId, GlobalScopeId, Outcome, RunnableSubmitter, ShutdownHandle, Submission,
    SubmissionAnswer,
    mocks::{MockGroupObserver, MockSubmissionSender},
};
use grid_batch_submitter::{NodeUrlResolver, SubmitterBuilder, SubmitterOptions};
use log::{Level, LevelFilter, Log, Metadata, Record, kv};

static LOG: RecordingLog = RecordingLog(Mutex::new(Vec::new()));

/// Records every line as `LEVEL text key=value ...`.
struct RecordingLog(Mutex<Vec<String>>);

impl Log for RecordingLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.level() <= Level::Info {
            let mut line = format!("{} {}", record.level(), record.args());
            record.key_values().visit(&mut AppendPairs(&mut line)).unwrap();
            self.0.lock().unwrap().push(line);
        }
    }

    fn flush(&self) {}
}

/// Appends key-value pairs to a line.
struct AppendPairs<'a>(&'a mut String);

impl<'kvs> kv::VisitSource<'kvs> for AppendPairs<'_> {
    fn visit_pair(&mut self, key: kv::Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        let value = if key.as_str() == "elapsed_ms" { "..".to_owned() } else { value.to_string() };
        self.0.push_str(&format!(" {key}={value}"));
        Ok(())
    }
}

#[test]
fn submissions_are_logged_without_secrets() {
    log::set_logger(&LOG).unwrap();
    log::set_max_level(LevelFilter::Info);
    let mut sender = MockSubmissionSender::<GlobalScopeId>::new();
    sender.expect_send().returning(|url, submission| {
        let (outcome, status, message) = match submission.batch_header() {
            "good" => (Outcome::Accepted, Some(202), None),
            "plain" => (Outcome::Accepted, None, None),
            "parked" => (Outcome::Parked, None, Some("the gas price is too high".to_owned())),
            _ => (Outcome::Ambiguous, None, Some(format!("time-out\nat {url}"))),
        };
        Box::pin(ready(SubmissionAnswer { outcome, status, message, retry_after: None }))
    });
    let mut observer = MockGroupObserver::new();
    observer.expect_notify_group().returning(|_| Ok(()));
    let submission = |name: &str| Submission::new(name.to_owned(), GlobalScopeId, Vec::new());
    let second = AttemptId { attempt: 2, epoch: 1 };
    let nodes = NodeUrlResolver::new(["http://user:secret@ledger"]).unwrap();

    // One at a time: otherwise the good batch could make the node healthy again.
    let options = SubmitterOptions { concurrency: 1, ..SubmitterOptions::default() };
    let running = SubmitterBuilder::new()
        .with_options(options)
        .with_queue([
            submission("good"),
            submission("plain"),
            submission("parked").with_attempt_id(second),
            submission("bad"),
        ])
        .with_sender(Arc::new(sender))
        .with_nodes(Arc::new(nodes))
        .with_group_observer(Arc::new(observer))
        .build()
        .unwrap()
        .run()
        .unwrap();
    while running.stats().taken < 4 || running.stats().in_flight() > 0 {
        std::thread::yield_now();
    }
    running.wait_for_shutdown().unwrap();

    let mut lines = LOG.0.lock().unwrap().clone();
    lines.sort();
    lines.retain(|line| line.contains("batch_id=") || line.contains("node="));
    assert_eq!(
        lines,
        [
            "INFO batch taken from the queue batch_id=bad service=global",
            "INFO batch taken from the queue batch_id=good service=global",
            "INFO batch taken from the queue batch_id=plain service=global",
            "INFO submission ended batch_id=good service=global attempts=1 \
             elapsed_ms=.. outcome=accepted status=202 message=None",
            "INFO submission ended batch_id=plain service=global attempts=1 \
             elapsed_ms=.. outcome=accepted status=None message=None",
            "WARN node marked unhealthy node=http://ledger outcome=outcome unknown",
            "WARN submission ended batch_id=bad service=global attempts=1 \
             elapsed_ms=.. outcome=outcome unknown status=None message=time-out\\nat http://ledger",
        ]
    );
    assert!(!lines.concat().contains("secret"));
}
