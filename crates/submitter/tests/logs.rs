//! What can be read in the log.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

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

static LINES: Lines = Lines(Mutex::new(Vec::new()));

/// Keeps every line, as `LEVEL text key=value ...`.
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.level() <= Level::Info {
            let mut line = format!("{} {}", record.level(), record.args());
            record.key_values().visit(&mut Append(&mut line)).unwrap();
            self.0.lock().unwrap().push(line);
        }
    }

    fn flush(&self) {}
}

struct Append<'a>(&'a mut String);

impl<'kvs> kv::VisitSource<'kvs> for Append<'_> {
    fn visit_pair(&mut self, key: kv::Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        let value = if key.as_str() == "elapsed_ms" { "..".to_owned() } else { value.to_string() };
        self.0.push_str(&format!(" {key}={value}"));
        Ok(())
    }
}

#[test]
fn it_shows_when_a_batch_was_taken_and_what_came_of_it_without_secrets() {
    log::set_logger(&LINES).unwrap();
    log::set_max_level(LevelFilter::Info);
    let mut sender = MockSubmissionSender::<GlobalScopeId>::new();
    sender.expect_send().returning(|url, submission| {
        let (outcome, status, message) = match submission.batch_header() {
            "good" => (Outcome::Accepted, Some(202), None),
            "plain" => (Outcome::Accepted, None, None),
            "parked" => (Outcome::Parked, None, Some("too dear".to_owned())),
            _ => (Outcome::Ambiguous, None, Some(format!("time-out\nat {url}"))),
        };
        Box::pin(ready(SubmissionAnswer { outcome, status, message, retry_after: None }))
    });
    let mut observer = MockGroupObserver::new();
    observer.expect_notify_group().returning(|_| Ok(()));
    let submission = |name: &str| Submission::new(name.to_owned(), GlobalScopeId, Vec::new());
    let second = AttemptId { attempt: 2, epoch: 1 };
    let nodes = NodeUrlResolver::new(["http://user:secret@ledger"]).unwrap();

    // One after the other: else the good one may find the node set aside, and bring it back.
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
    while running.stats().taken < 4 || running.stats().under_way() > 0 {
        std::thread::yield_now();
    }
    running.wait_for_shutdown().unwrap();

    let mut lines = LINES.0.lock().unwrap().clone();
    lines.sort();
    lines.retain(|line| line.contains("batch=") || line.contains("node="));
    assert_eq!(
        lines,
        [
            "INFO a batch was taken from the queue batch=bad service=global",
            "INFO a batch was taken from the queue batch=good service=global",
            "INFO a batch was taken from the queue batch=plain service=global",
            "INFO the outcome of a batch arrived batch=good service=global attempts=1 \
             elapsed_ms=.. outcome=accepted status=202 message=None",
            "INFO the outcome of a batch arrived batch=plain service=global attempts=1 \
             elapsed_ms=.. outcome=accepted status=None message=None",
            "WARN a node is set aside node=http://ledger outcome=outcome unknown",
            "WARN the outcome of a batch arrived batch=bad service=global attempts=1 \
             elapsed_ms=.. outcome=outcome unknown status=None message=time-out\\nat http://ledger",
        ]
    );
    assert!(!lines.concat().contains("secret"));
}
