//! What the submitter logs.

use std::{future::ready, sync::Arc};

use grid_batch_core::GlobalScopeId;
use grid_batch_core::ledger::{AttemptId, Outcome, Submission, SubmissionAnswer};
use grid_batch_core::mocks::MockGroupObserver;
use grid_batch_nodes::NodePool;
use grid_batch_submitter::{
    RunnableSubmitter, ShutdownHandle, SubmitterBuilder, SubmitterOptions,
    mocks::MockSubmissionSender,
};
use grid_batch_test_support::log_lines::RecordingLog;

static LOG: RecordingLog = RecordingLog::new();

#[test]
fn submissions_are_logged_without_secrets() {
    LOG.install();
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
    let nodes = NodePool::new(["http://user:secret@ledger", "http://other"]);

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
        .with_url_resolver(nodes.resolver())
        .with_group_observer(Arc::new(observer))
        .build()
        .unwrap()
        .run()
        .unwrap();
    while running.stats().taken < 4 || running.stats().in_flight() > 0 {
        std::thread::yield_now();
    }
    running.wait_for_shutdown().unwrap();

    let mut lines = LOG.lines();
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
