//! How often, and how many at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use grid_batch_core::{
    GlobalScopeId, Outcome, RunningSubmitter, ShutdownHandle, Submission, UrlResolver,
};
use grid_batch_submitter::{
    FixedUrlResolver, NodeUrlResolver, SubmitterBuildError, SubmitterBuilder, SubmitterOptions,
};

use crate::support::*;

#[test]
fn a_vec_is_a_queue() {
    let gate = Gate::closed();
    gate.let_through(10);
    let recorder = Arc::new(Recorder::default());
    let running = run(builder(10, gate.sender(), &recorder));
    recorder.wait_for(10);
    let stats = running.stats();
    assert_eq!((stats.taken, stats.accepted, stats.under_way()), (10, 10, 0));
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(10);
}

#[test]
fn a_batch_whose_outcome_is_unknown_is_not_sent_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let sender = Arc::new(Sender(move |_: &Submission<GlobalScopeId>| {
        counted.fetch_add(1, SeqCst);
        Box::pin(async { answer(Outcome::Ambiguous) }) as Answering
    }));
    let recorder = Arc::new(Recorder::default());
    let running = run(builder(1, sender, &recorder));
    recorder.wait_for(1);
    let stopped = running.stop().unwrap();
    assert_eq!(calls.load(SeqCst), 1);
    assert_eq!(stopped.counters().read().in_doubt, 1);
}

#[test]
fn a_batch_that_the_ledger_is_too_busy_for_is_sent_again_and_then_reported() {
    let sender = Arc::new(Sender(|_: &Submission<GlobalScopeId>| {
        Box::pin(async { answer(Outcome::Busy) }) as Answering
    }));
    let recorder = Arc::new(Recorder::default());
    let busy = SubmitterOptions { busy_attempts: 5, ..options() };
    let running = run(builder(1, sender, &recorder).with_options(busy));
    recorder.wait_for(1);
    let attempts = recorder.outcomes.change(|outcomes| outcomes[0].attempts);
    let stats = running.stats();
    assert_eq!((attempts, stats.delayed, stats.sent_again), (5, 1, 4));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn three_thousand_submissions_keep_to_the_limit_and_are_all_reported() {
    const COUNT: usize = 3_000;
    const LIMIT: usize = 16;
    let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let sender = {
        let most = Arc::clone(&most);
        Arc::new(Sender(move |_: &Submission<GlobalScopeId>| {
            let (under_way, most) = (Arc::clone(&under_way), Arc::clone(&most));
            Box::pin(async move {
                most.fetch_max(under_way.fetch_add(1, SeqCst) + 1, SeqCst);
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                under_way.fetch_sub(1, SeqCst);
                answer(Outcome::Accepted)
            }) as Answering
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
fn nothing_is_taken_without_a_place_for_it() {
    let gate = Gate::closed();
    let recorder = Arc::new(Recorder::default());
    let limited = SubmitterOptions { concurrency: 3, ..options() };
    let mut running = run(builder(10, gate.sender(), &recorder).with_options(limited));
    gate.arrived.wait_until(|arrived| *arrived == 3);
    assert_eq!(running.stats().taken, 3);
    gate.let_through(1);
    gate.arrived.wait_until(|arrived| *arrived == 4);
    assert_eq!(running.stats().taken, 4);
    running.signal_shutdown().unwrap();
    gate.let_through(3);
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(4);
}

#[test]
fn a_node_that_fails_is_passed_over_at_the_next_attempt() {
    struct OneIsDown;
    impl grid_batch_core::SubmissionSender for OneIsDown {
        type Id = GlobalScopeId;
        fn send<'a>(&'a self, url: &'a str, _: &'a Submission<GlobalScopeId>) -> Answering {
            let outcome = if url == "http://down" { Outcome::NotSent } else { Outcome::Accepted };
            Box::pin(async move { answer(outcome) })
        }
    }
    let nodes = Arc::new(NodeUrlResolver::new(["http://down", "http://up"]).unwrap());
    let recorder = Arc::new(Recorder::default());
    let running = run(builder(20, Arc::new(OneIsDown), &recorder).with_nodes(Arc::clone(&nodes)));
    recorder.wait_for(20);
    assert_eq!(recorder.tally(), [(Outcome::Accepted, 20)].into());
    assert_eq!(nodes.node_of("batch-00007").as_deref(), Some("http://up"));
    assert_eq!(nodes.url(&GlobalScopeId), "http://up");
    running.wait_for_shutdown().unwrap();
}

#[test]
fn a_submitter_that_could_not_work_is_not_built() {
    let recorder = Arc::new(Recorder::default());
    let whole = || builder(0, Gate::closed().sender(), &recorder);
    let error = |builder: SubmitterBuilder<GlobalScopeId>| builder.build().unwrap_err().to_string();

    assert_eq!(error(SubmitterBuilder::new()), "the submitter has no observer");
    let bare = SubmitterBuilder::new().with_group_observer(Arc::<Recorder>::clone(&recorder));
    assert_eq!(error(bare), "the submitter has no URL resolver");
    let bare = SubmitterBuilder::new()
        .with_observer(Arc::<Recorder>::clone(&recorder))
        .with_url_resolver(Arc::new(FixedUrlResolver::new("http://ledger")));
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
