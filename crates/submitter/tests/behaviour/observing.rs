//! What observers are told, and what becomes of those that fail.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use grid_batch_core::{
    BatchError, BatchResult, GlobalScopeId, GroupObserver, Outcome, RunnableSubmitter,
    RunningSubmitter, ShutdownHandle, Submission, SubmissionOutcome, SubmitterObserver,
    mocks::MockSubmitterObserver,
};
use grid_batch_submitter::SubmitterOptions;

use crate::support::*;

fn note(batch: &str, status: Option<u16>, message: Option<&str>) -> Note {
    Note { batch: batch.to_owned(), status, message: message.map(ToOwned::to_owned) }
}

/// A sender whose answers depend on the batch.
fn answers(
    outcome: impl Fn(&str) -> Outcome + Send + Sync + 'static,
) -> Arc<Sender<impl Fn(&Submission<GlobalScopeId>) -> Answering + Send + Sync>> {
    Arc::new(Sender(move |submission: &Submission<GlobalScopeId>| {
        let answer = answer(outcome(submission.batch_header()));
        Box::pin(async { answer }) as Answering
    }))
}

/// A group observer that fails while a function says so, and otherwise records.
struct Failing<F> {
    fails: F,
    groups: Mutex<Vec<Vec<String>>>,
    recorder: Arc<Recorder>,
}

impl<F: Fn(usize) -> BatchResult<()> + Send + Sync> GroupObserver for Failing<F> {
    type Id = GlobalScopeId;

    fn notify_group(&self, group: &[SubmissionOutcome<GlobalScopeId>]) -> BatchResult<()> {
        let calls = {
            let mut groups = self.groups.lock().unwrap();
            groups.push(group.iter().map(|outcome| outcome.batch_header.clone()).collect());
            groups.len()
        };
        (self.fails)(calls)?;
        self.recorder.notify_group(group)
    }
}

fn failing<F: Fn(usize) -> BatchResult<()>>(recorder: &Arc<Recorder>, fails: F) -> Arc<Failing<F>> {
    Arc::new(Failing { fails, groups: Mutex::default(), recorder: Arc::clone(recorder) })
}

fn unavailable() -> BatchResult<()> {
    Err(BatchError::Unavailable("the database".to_owned()))
}

#[test]
fn an_observer_is_told_of_the_beginning_and_then_of_the_end() {
    let sender = answers(|batch| match batch {
        "batch-00000" => Outcome::Accepted,
        _ => Outcome::Ambiguous,
    });
    let recorder = Arc::new(Recorder::default());
    let running =
        run(builder(2, sender, &recorder).with_observer(Arc::<Recorder>::clone(&recorder)));
    recorder.notes.wait_until(|notes| notes.len() == 4);
    running.wait_for_shutdown().unwrap();
    let of = |batch: &str| {
        let notes = recorder.notes.change(|notes| notes.clone());
        notes.into_iter().filter(|note| note.batch == batch).collect::<Vec<_>>()
    };
    let begins_and_ends = |batch, status, message| {
        assert_eq!(of(batch), [note(batch, None, None), note(batch, status, message)]);
    };
    begins_and_ends("batch-00000", Some(202), None);
    // An end without a status has a message: it must not look like a beginning.
    begins_and_ends("batch-00001", None, Some("outcome unknown"));
}

#[test]
fn an_observer_of_single_submissions_is_enough() {
    let mut observer = MockSubmitterObserver::<GlobalScopeId>::new();
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    observer.expect_notify().times(2).returning(move |_, _, _, _| {
        counted.fetch_add(1, SeqCst);
    });
    let running = grid_batch_submitter::SubmitterBuilder::new()
        .with_queue(submissions(0..1))
        .with_sender(answers(|_| Outcome::Accepted))
        .with_url_resolver(Arc::new(grid_batch_submitter::FixedUrlResolver::new("http://ledger")))
        .with_observer(Arc::new(observer))
        .build()
        .unwrap()
        .run()
        .unwrap();
    while running.stats().accepted == 0 {
        std::thread::yield_now();
    }
    running.wait_for_shutdown().unwrap();
    assert_eq!(told.load(SeqCst), 2);
}

#[test]
fn a_group_that_fails_is_given_again_until_it_succeeds_and_in_order() {
    let recorder = Arc::new(Recorder::default());
    let observer = failing(&recorder, |call| match call {
        1 | 3 => unavailable(),
        2 => panic!("the observer panics"),
        _ => Ok(()),
    });
    let one = SubmitterOptions { concurrency: 1, group_limit: 5, ..options() };
    let running = run(builder(50, answers(|_| Outcome::Accepted), &recorder)
        .with_group_observer(Arc::<Failing<_>>::clone(&observer))
        .with_options(one));
    recorder.wait_for(50);
    let stats = running.stats();
    assert_eq!((stats.observer_failures, stats.panics), (3, 1));
    running.wait_for_shutdown().unwrap();
    let groups = observer.groups.lock().unwrap();
    assert!(groups[1..4].iter().all(|group| *group == groups[0]), "{groups:?}");
    assert!(groups.iter().all(|group| group.len() <= 5), "{groups:?}");
    let told: Vec<String> = recorder.outcomes().into_iter().map(|(batch, _)| batch).collect();
    assert_eq!(told, names(0..50));
}

#[test]
fn while_a_group_cannot_be_told_no_more_is_taken_than_there_is_room_for() {
    let recorder = Arc::new(Recorder::default());
    let (tried, works) = (Arc::new(Watched::<usize>::default()), Arc::new(AtomicUsize::new(0)));
    let observer = {
        let (tried, works) = (Arc::clone(&tried), Arc::clone(&works));
        failing(&recorder, move |_| {
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
fn what_cannot_be_told_before_the_deadline_is_kept_for_the_next_run() {
    let recorder = Arc::new(Recorder::default());
    let works = Arc::new(AtomicUsize::new(0));
    let observer = {
        let works = Arc::clone(&works);
        failing(&recorder, move |_| if works.load(SeqCst) == 0 { unavailable() } else { Ok(()) })
    };
    let short = SubmitterOptions {
        drain_limit: Duration::from_millis(20),
        concurrency: 8,
        group_limit: 3,
        ..options()
    };
    let gate = Gate::closed();
    gate.let_through(100);
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
fn a_shutdown_says_what_could_not_be_told() {
    let recorder = Arc::new(Recorder::default());
    let gate = Gate::closed();
    let short = SubmitterOptions { drain_limit: Duration::from_millis(1), ..options() };
    let running = run(builder(2, gate.sender(), &recorder)
        .with_group_observer(failing(&recorder, |_| unavailable()))
        .with_options(short));
    gate.arrived.wait_until(|arrived| *arrived == 2);
    let error = running.wait_for_shutdown().unwrap_err().to_string();
    assert_eq!(error, "the group observer was not told of the outcomes of 2 batches");
}

#[test]
fn an_observer_that_panics_is_passed_over() {
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
    assert_eq!(recorder.notes.change(|notes| notes.len()), 4);
    recorder.assert_each_once(3);
}
