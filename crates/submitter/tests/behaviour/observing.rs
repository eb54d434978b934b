//! Notifications of observers, also of those that fail.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use grid_batch_core::ledger::{GroupObserver, Outcome, Submission, SubmissionOutcome};
use grid_batch_core::{BatchError, BatchResult, GlobalScopeId};
use grid_batch_submitter::{
    RunnableSubmitter, RunningSubmitter, ShutdownHandle, SubmitterObserver, SubmitterOptions,
    mocks::MockSubmitterObserver,
};

use crate::support::*;

fn notification(batch: &str, status: Option<u16>, message: Option<&str>) -> Notification {
    Notification { batch: batch.to_owned(), status, message: message.map(ToOwned::to_owned) }
}

/// A sender whose answer depends on the batch.
fn answers(
    outcome: impl Fn(&str) -> Outcome + Send + Sync + 'static,
) -> Arc<FnSender<impl Fn(&Submission<GlobalScopeId>) -> AnswerFuture + Send + Sync>> {
    Arc::new(FnSender(move |submission: &Submission<GlobalScopeId>| {
        let answer = answer(outcome(submission.batch_header()));
        Box::pin(async { answer }) as AnswerFuture
    }))
}

/// A group observer that records a group when `result` of its call number is `Ok`.
struct ScriptedGroupObserver<F> {
    result: F,
    groups: Mutex<Vec<Vec<String>>>,
    recorder: Arc<Recorder>,
}

impl<F: Fn(usize) -> BatchResult<()> + Send + Sync> GroupObserver for ScriptedGroupObserver<F> {
    type Id = GlobalScopeId;

    fn notify_group(&self, group: &[SubmissionOutcome<GlobalScopeId>]) -> BatchResult<()> {
        let calls = {
            let mut groups = self.groups.lock().unwrap();
            groups.push(group.iter().map(|outcome| outcome.batch_header.clone()).collect());
            groups.len()
        };
        (self.result)(calls)?;
        self.recorder.notify_group(group)
    }
}

fn scripted<F: Fn(usize) -> BatchResult<()>>(
    recorder: &Arc<Recorder>,
    result: F,
) -> Arc<ScriptedGroupObserver<F>> {
    Arc::new(ScriptedGroupObserver {
        result,
        groups: Mutex::default(),
        recorder: Arc::clone(recorder),
    })
}

fn unavailable() -> BatchResult<()> {
    Err(BatchError::Unavailable("the database".to_owned()))
}

#[test]
fn observer_is_notified_of_start_and_end() {
    let sender = answers(|batch| match batch {
        "batch-00000" => Outcome::Accepted,
        _ => Outcome::Ambiguous,
    });
    let recorder = Arc::new(Recorder::default());
    let running =
        run(builder(2, sender, &recorder).with_observer(Arc::<Recorder>::clone(&recorder)));
    recorder.notifications.wait_until(|all| all.len() == 4);
    running.wait_for_shutdown().unwrap();
    let of = |batch: &str| {
        let all = recorder.notifications.change(|all| all.clone());
        all.into_iter().filter(|notification| notification.batch == batch).collect::<Vec<_>>()
    };
    let assert_start_and_end = |batch, status, message| {
        assert_eq!(
            of(batch),
            [notification(batch, None, None), notification(batch, status, message)]
        );
    };
    assert_start_and_end("batch-00000", Some(202), None);
    // An end without a status has a message: it must not look like a start.
    assert_start_and_end("batch-00001", None, Some("outcome unknown"));
}

#[test]
fn group_observer_is_optional() {
    let mut observer = MockSubmitterObserver::<GlobalScopeId>::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    observer.expect_notify().times(2).returning(move |_, _, _, _| {
        counted.fetch_add(1, SeqCst);
    });
    let running = grid_batch_submitter::SubmitterBuilder::new()
        .with_queue(submissions(0..1))
        .with_sender(answers(|_| Outcome::Accepted))
        .with_url_resolver(grid_batch_nodes::NodePool::new(["http://ledger"]).resolver())
        .with_observer(Arc::new(observer))
        .build()
        .unwrap()
        .run()
        .unwrap();
    while running.stats().accepted == 0 {
        std::thread::yield_now();
    }
    running.wait_for_shutdown().unwrap();
    assert_eq!(calls.load(SeqCst), 2);
}

#[test]
fn failed_group_is_delivered_again_in_order() {
    let recorder = Arc::new(Recorder::default());
    let observer = scripted(&recorder, |call| match call {
        1 | 3 => unavailable(),
        2 => panic!("the observer panics"),
        _ => Ok(()),
    });
    let one = SubmitterOptions { concurrency: 1, group_limit: 5, ..options() };
    let running = run(builder(50, answers(|_| Outcome::Accepted), &recorder)
        .with_group_observer(Arc::<ScriptedGroupObserver<_>>::clone(&observer))
        .with_options(one));
    recorder.wait_for(50);
    let stats = running.stats();
    assert_eq!((stats.observer_failures, stats.panics), (3, 1));
    running.wait_for_shutdown().unwrap();
    let groups = observer.groups.lock().unwrap();
    assert!(groups[1..4].iter().all(|group| *group == groups[0]), "{groups:?}");
    assert!(groups.iter().all(|group| group.len() <= 5), "{groups:?}");
    let delivered: Vec<String> = recorder.outcomes().into_iter().map(|(batch, _)| batch).collect();
    assert_eq!(delivered, names(0..50));
}

#[test]
fn failing_group_observer_limits_what_is_taken() {
    let recorder = Arc::new(Recorder::default());
    let (tried, works) =
        (Arc::new(WatchedValue::<usize>::default()), Arc::new(AtomicUsize::new(0)));
    let observer = {
        let (tried, works) = (Arc::clone(&tried), Arc::clone(&works));
        scripted(&recorder, move |_| {
            tried.change(|count| *count += 1);
            if works.load(SeqCst) == 0 { unavailable() } else { Ok(()) }
        })
    };
    let small = SubmitterOptions { concurrency: 4, group_limit: 6, ..options() };
    let running = run(builder(100, answers(|_| Outcome::Accepted), &recorder)
        .with_group_observer(observer)
        .with_options(small));
    tried.wait_until(|count| *count >= 20);
    assert!(running.stats().taken <= 10, "{:?}", running.stats());
    works.store(1, SeqCst);
    recorder.wait_for(100);
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(100);
}

#[test]
fn undelivered_outcomes_are_kept_for_the_next_run() {
    let recorder = Arc::new(Recorder::default());
    let works = Arc::new(AtomicUsize::new(0));
    let observer = {
        let works = Arc::clone(&works);
        scripted(&recorder, move |_| if works.load(SeqCst) == 0 { unavailable() } else { Ok(()) })
    };
    let short = SubmitterOptions {
        drain_limit: Duration::from_millis(20),
        concurrency: 8,
        group_limit: 3,
        ..options()
    };
    let gate = Gate::closed();
    gate.allow(100);
    let running = run(builder(30, gate.sender(), &recorder)
        .with_group_observer(observer)
        .with_options(short));
    gate.arrived.wait_until(|arrived| *arrived >= 8);
    let stopped = running.stop().unwrap();
    let taken = stopped.counters().read().taken;
    assert_eq!(stopped.undelivered().len() as u64, taken);
    assert_eq!(stopped.counters().read().undelivered, taken);
    assert_eq!(recorder.outcomes(), []);

    works.store(1, SeqCst);
    let running = stopped.run().unwrap();
    recorder.wait_for(30);
    assert_eq!(running.stats().undelivered, 0);
    running.wait_for_shutdown().unwrap();
    recorder.assert_each_once(30);
}

#[test]
fn shutdown_reports_undelivered_outcomes() {
    let recorder = Arc::new(Recorder::default());
    let gate = Gate::closed();
    let short = SubmitterOptions { drain_limit: Duration::from_millis(1), ..options() };
    let running = run(builder(2, gate.sender(), &recorder)
        .with_group_observer(scripted(&recorder, |_| unavailable()))
        .with_options(short));
    gate.arrived.wait_until(|arrived| *arrived == 2);
    let error = running.wait_for_shutdown().unwrap_err().to_string();
    assert_eq!(error, "the outcomes of 2 batches were not delivered to the group observer");
}

#[test]
fn panic_of_an_observer_is_ignored() {
    struct Panicking(Arc<Recorder>);
    impl SubmitterObserver for Panicking {
        type Id = GlobalScopeId;
        fn notify(&self, batch: String, id: GlobalScopeId, s: Option<u16>, m: Option<String>) {
            assert_ne!(batch, "batch-00001", "the observer panics");
            self.0.notify(batch, id, s, m);
        }
    }
    let recorder = Arc::new(Recorder::default());
    let running = run(builder(3, answers(|_| Outcome::Accepted), &recorder)
        .with_observer(Arc::new(Panicking(Arc::clone(&recorder)))));
    recorder.wait_for(3);
    let stopped = running.stop().unwrap();
    let stats = stopped.counters().read();
    assert_eq!((stats.accepted, stats.observer_failures, stats.panics), (3, 2, 2));
    assert_eq!(recorder.notifications.change(|all| all.len()), 4);
    recorder.assert_each_once(3);
}
