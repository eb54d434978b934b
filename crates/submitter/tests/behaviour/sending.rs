//! Attempts, concurrency and the builder.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use grid_batch_core::GlobalScopeId;
use grid_batch_core::ledger::{AttemptId, Outcome, Submission, SubmissionAnswer};
use grid_batch_nodes::{NodePool, StatusUrlResolver};
use grid_batch_submitter::{
    RunningSubmitter, ShutdownHandle, SubmitterBuildError, SubmitterBuilder, SubmitterOptions,
    UrlResolver,
};

use crate::support::*;

#[test]
fn vec_is_a_queue() {
    let gate = Gate::closed();
    gate.allow(10);
    let recorder = Arc::new(Recorder::default());
    let running = run(builder(10, gate.sender(), &recorder));
    recorder.wait_for(10);
    let stats = running.stats();
    assert_eq!((stats.taken, stats.accepted, stats.in_flight()), (10, 10, 0));
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(10);
}

#[test]
fn ambiguous_outcome_is_not_retried() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let sender = Arc::new(FnSender(move |_: &Submission<GlobalScopeId>| {
        counted.fetch_add(1, SeqCst);
        Box::pin(async { answer(Outcome::Ambiguous) }) as AnswerFuture
    }));
    let recorder = Arc::new(Recorder::default());
    let running = run(builder(1, sender, &recorder));
    recorder.wait_for(1);
    let stopped = running.stop().unwrap();
    assert_eq!(calls.load(SeqCst), 1);
    assert_eq!(stopped.counters().read().in_doubt, 1);
}

/// 100 services wait to be tried again, and the only place is free for another one.
#[test]
fn what_waits_gives_its_place_back() {
    let sender = Arc::new(FnSender(|submission: &Submission<GlobalScopeId>| {
        let busy = submission.batch_header() != "batch-00100";
        let mut answer = answer(if busy { Outcome::Busy } else { Outcome::Accepted });
        answer.retry_after = Some(Duration::from_hours(1));
        Box::pin(async { answer }) as AnswerFuture
    }));
    let recorder = Arc::new(Recorder::default());
    let single = SubmitterOptions { concurrency: 1, ..options() };
    let running = run(builder(101, sender, &recorder).with_options(single));
    recorder.wait_for(101);
    let counts = [(Outcome::Accepted, 1), (Outcome::Busy, 100)];
    assert_eq!(recorder.count_by_outcome(), counts.into());
    let stats = running.stats();
    assert_eq!((stats.delayed, stats.sent_again), (100, 0));
    assert_eq!(running.delayed_services().read().services, 0, "the last batch was accepted");
    running.wait_for_shutdown().unwrap();
}

/// The second attempt at a batch counts as sent again, unless no node can have received the first one.
#[test]
fn only_what_a_node_may_have_received_is_sent_again() {
    let waits_for_replay = SubmissionAnswer { status: None, ..answer(Outcome::Busy) };
    let full_queue = SubmissionAnswer { status: Some(429), ..answer(Outcome::Busy) };
    for (first, sent_again) in [
        (waits_for_replay, 0),
        (answer(Outcome::NotSent), 0),
        (answer(Outcome::Parked), 0),
        (full_queue, 1),
        (answer(Outcome::Refused), 1),
        (answer(Outcome::Ambiguous), 1),
        (answer(Outcome::Accepted), 1),
    ] {
        let outcome = (first.outcome, first.status);
        let sender = Arc::new(FnSender(move |submission: &Submission<GlobalScopeId>| {
            let attempt = submission.attempt_id().unwrap().attempt;
            let answer = if attempt == 1 { first.clone() } else { answer(Outcome::Accepted) };
            Box::pin(async { answer }) as AnswerFuture
        }));
        let recorder = Arc::new(Recorder::default());
        let attempts = [1, 2].map(|attempt| {
            let submission = Submission::new("batch".to_owned(), GlobalScopeId, Vec::new());
            submission.with_attempt_id(AttemptId { attempt, epoch: 1 })
        });
        let one_by_one = SubmitterOptions { concurrency: 1, ..options() };
        let builder = builder(0, sender, &recorder).with_queue(attempts);
        let running = run(builder.with_options(one_by_one));
        recorder.wait_for(2);
        assert_eq!(running.stats().sent_again, sent_again, "{outcome:?}");
        running.wait_for_shutdown().unwrap();
    }
}

#[test]
fn concurrency_limit_holds_for_3000_submissions() {
    const COUNT: usize = 3_000;
    const LIMIT: usize = 16;
    let (in_flight, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let sender = {
        let most = Arc::clone(&most);
        Arc::new(FnSender(move |_: &Submission<GlobalScopeId>| {
            let (in_flight, most) = (Arc::clone(&in_flight), Arc::clone(&most));
            Box::pin(async move {
                most.fetch_max(in_flight.fetch_add(1, SeqCst) + 1, SeqCst);
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                in_flight.fetch_sub(1, SeqCst);
                answer(Outcome::Accepted)
            }) as AnswerFuture
        }))
    };
    let recorder = Arc::new(Recorder::default());
    let limited = SubmitterOptions { concurrency: LIMIT as u32, ..options() };
    let running = run(builder(COUNT, sender, &recorder).with_options(limited));
    recorder.wait_for(COUNT);
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(COUNT);
    assert!(most.load(SeqCst) <= LIMIT, "{} at once", most.load(SeqCst));
}

#[test]
fn queue_is_not_polled_without_a_free_slot() {
    let gate = Gate::closed();
    let recorder = Arc::new(Recorder::default());
    let limited = SubmitterOptions { concurrency: 3, ..options() };
    let mut running = run(builder(10, gate.sender(), &recorder).with_options(limited));
    gate.arrived.wait_until(|arrived| *arrived == 3);
    assert_eq!(running.stats().taken, 3);
    gate.allow(1);
    gate.arrived.wait_until(|arrived| *arrived == 4);
    assert_eq!(running.stats().taken, 4);
    running.signal_shutdown().unwrap();
    gate.allow(3);
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(4);
}

#[test]
fn next_attempt_skips_a_failed_node() {
    struct OneIsDown;
    impl grid_batch_submitter::SubmissionSender for OneIsDown {
        type Id = GlobalScopeId;
        fn send<'a>(&'a self, url: &'a str, _: &'a Submission<GlobalScopeId>) -> AnswerFuture {
            let outcome = if url == "http://down" { Outcome::NotSent } else { Outcome::Accepted };
            Box::pin(async move { answer(outcome) })
        }
    }
    let nodes = NodePool::new(["http://down", "http://up"]);
    let recorder = Arc::new(Recorder::default());
    let running =
        run(builder(20, Arc::new(OneIsDown), &recorder).with_url_resolver(nodes.resolver()));
    recorder.wait_for(20);
    assert_eq!(recorder.count_by_outcome(), [(Outcome::Accepted, 20)].into());
    assert_eq!(nodes.status_urls("global", "batch-00007")[0], "http://up");
    assert_eq!(nodes.resolver().url(&GlobalScopeId), "http://up");
    running.wait_for_shutdown().unwrap();
}

#[test]
fn builder_rejects_missing_parts_and_bad_options() {
    let recorder = Arc::new(Recorder::default());
    let whole = || builder(0, Gate::closed().sender(), &recorder);
    let error = |builder: SubmitterBuilder<GlobalScopeId>| builder.build().unwrap_err().to_string();

    assert_eq!(error(SubmitterBuilder::new()), "the submitter has no observer");
    let bare = SubmitterBuilder::new().with_group_observer(Arc::<Recorder>::clone(&recorder));
    assert_eq!(error(bare), "the submitter has no URL resolver");
    let bare = SubmitterBuilder::new()
        .with_observer(Arc::<Recorder>::clone(&recorder))
        .with_url_resolver(NodePool::new(["http://ledger"]).resolver());
    assert_eq!(error(bare), "the submitter has no sender");

    let zero = SubmitterOptions { concurrency: 0, ..options() };
    assert_eq!(
        whole().with_options(zero).build().unwrap_err(),
        SubmitterBuildError::Zero { option: "concurrency" }
    );
    let limit = options().sending_limit;
    let short = SubmitterOptions { total_limit: limit, ..options() };
    assert_eq!(
        whole().with_options(short).build().unwrap_err(),
        SubmitterBuildError::Limits { total_limit: limit, sending_limit: limit }
    );
}
