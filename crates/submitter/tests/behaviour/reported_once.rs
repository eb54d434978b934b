//! Every submission taken from the queue is reported exactly once.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::ledger::{GroupObserver, Outcome, Submission, SubmissionOutcome};
use grid_batch_core::{BatchError, BatchResult, GlobalScopeId};
use grid_batch_submitter::{
    RunnableSubmitter, RunningSubmitter, ShutdownHandle, SubmitterObserver, SubmitterOptions,
};

use crate::support::*;

const COUNT: usize = 200;
const CASES: usize = 40;

#[test]
fn every_taken_submission_is_reported_exactly_once() {
    let seeds = match std::env::var("SUBMITTER_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..CASES).map(|_| fastrand::u64(..)).collect(),
    };
    for seed in seeds {
        let print_seed = PrintSeedOnPanic(seed);
        run_case(seed);
        std::mem::forget(print_seed);
    }
}

struct PrintSeedOnPanic(u64);

impl Drop for PrintSeedOnPanic {
    fn drop(&mut self) {
        eprintln!("to repeat this case: SUBMITTER_SEED={}", self.0);
    }
}

/// Random answers, panics and observer failures, and several stops at random times.
fn run_case(seed: u64) {
    let random = RandomSource(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))));
    let recorder = Arc::new(Recorder::default());
    let options = SubmitterOptions {
        concurrency: random.below(1..40) as u32,
        group_limit: random.below(1..20),
        drain_limit: Duration::from_micros(random.below(0..3_000) as u64),
        poll_interval: Duration::from_millis(1),
        sending_limit: Duration::from_millis(2),
        seed: Some(seed),
        ..options()
    };
    let mut stopped = builder(0, random.sender(), &recorder)
        .with_queue(random.queue())
        .with_observer(Arc::new(PanickingObserver {
            random: random.clone(),
            recorder: Arc::clone(&recorder),
        }))
        .with_group_observer(Arc::new(FailingGroupObserver {
            random: random.clone(),
            recorder: recorder.clone(),
        }))
        .with_options(options)
        .build()
        .unwrap();

    for _ in 0..random.below(1..4) {
        let until = random.below(0..COUNT) as u64;
        let running = stopped.run().unwrap();
        while running.stats().taken < until {
            std::thread::yield_now();
        }
        stopped = running.stop().unwrap();
        assert_reported_once(&recorder, stopped.undelivered(), stopped.counters().read().taken);
    }
    let running = stopped.run().unwrap();
    while running.stats().taken < COUNT as u64 {
        std::thread::yield_now();
    }
    let counters = running.counters();
    let shutdown = running.wait_for_shutdown();
    let stats = counters.read();
    assert_eq!((stats.taken, stats.in_flight()), (COUNT as u64, 0));
    assert_eq!(shutdown.is_ok(), stats.undelivered == 0);
    let reported = recorder.outcomes().len() as u64 + stats.undelivered;
    assert_eq!(reported, stats.taken);
}

/// Each taken batch was either delivered to the group observer or kept as undelivered, once.
fn assert_reported_once(
    recorder: &Recorder,
    undelivered: &[SubmissionOutcome<GlobalScopeId>],
    taken: u64,
) {
    let delivered = recorder.outcomes().into_iter().map(|(batch, _)| batch);
    let mut all: Vec<String> =
        delivered.chain(undelivered.iter().map(|o| o.batch_header.clone())).collect();
    all.sort();
    assert_eq!(all, names(0..taken as usize));
    recorder.notifications.change(|notifications| {
        let mut ended: Vec<&str> = notifications
            .iter()
            .filter(|end| end.status.is_some() || end.message.is_some())
            .map(|end| end.batch.as_str())
            .collect();
        ended.sort_unstable();
        let ended_once = ended.windows(2).all(|pair| pair[0] != pair[1]);
        assert!(ended_once && ended.len() == taken as usize, "{} of {taken}", ended.len());
    });
}

#[derive(Clone)]
struct RandomSource(Arc<Mutex<fastrand::Rng>>);

impl RandomSource {
    fn below(&self, range: std::ops::Range<usize>) -> usize {
        self.0.lock().unwrap().usize(range)
    }

    fn one_in(&self, count: usize) -> bool {
        self.below(0..count) == 0
    }

    fn queue(&self) -> impl Iterator<Item = Submission<GlobalScopeId>> + Send + use<> {
        let (random, mut submissions) = (self.clone(), submissions(0..COUNT).into_iter());
        std::iter::from_fn(move || match random.below(0..20) {
            0 => panic!("the queue panics"),
            1 => None,
            _ => submissions.next(),
        })
    }

    fn sender(
        &self,
    ) -> Arc<FnSender<impl Fn(&Submission<GlobalScopeId>) -> AnswerFuture + Send + Sync + use<>>>
    {
        let random = self.clone();
        Arc::new(FnSender(move |_: &Submission<GlobalScopeId>| {
            assert!(!random.one_in(20), "the sender panics before its future");
            let (kind, pauses) = (random.below(0..9), random.below(0..30));
            Box::pin(async move {
                for _ in 0..pauses {
                    tokio::task::yield_now().await;
                }
                answer(match kind {
                    0 => panic!("the sender panics"),
                    1 => std::future::pending().await,
                    2 => Outcome::NotSent,
                    3 => Outcome::Busy,
                    4 => Outcome::Rejected,
                    5 => Outcome::Refused,
                    6 => Outcome::Ambiguous,
                    _ => Outcome::Accepted,
                })
            }) as AnswerFuture
        }))
    }
}

/// An observer that records and then may panic.
struct PanickingObserver {
    random: RandomSource,
    recorder: Arc<Recorder>,
}

impl SubmitterObserver for PanickingObserver {
    type Id = GlobalScopeId;

    fn notify(&self, batch: String, id: GlobalScopeId, s: Option<u16>, m: Option<String>) {
        self.recorder.notify(batch, id, s, m);
        assert!(!self.random.one_in(20), "the observer panics");
    }
}

/// A group observer that may fail or panic before it records.
struct FailingGroupObserver {
    random: RandomSource,
    recorder: Arc<Recorder>,
}

impl GroupObserver for FailingGroupObserver {
    type Id = GlobalScopeId;

    fn notify_group(&self, group: &[SubmissionOutcome<GlobalScopeId>]) -> BatchResult<()> {
        match self.random.below(0..8) {
            0 => panic!("the group observer panics"),
            1..4 => Err(BatchError::Unavailable("the database".to_owned())),
            _ => self.recorder.notify_group(group),
        }
    }
}
