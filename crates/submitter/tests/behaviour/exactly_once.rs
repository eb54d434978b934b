//! Whatever happens, every submission taken is reported once.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{
    BatchError, BatchResult, GlobalScopeId, GroupObserver, Outcome, RunnableSubmitter,
    RunningSubmitter, ShutdownHandle, Submission, SubmissionOutcome, SubmitterObserver,
};
use grid_batch_submitter::SubmitterOptions;

use crate::support::*;

const COUNT: usize = 200;
const CASES: usize = 40;

#[test]
fn every_submission_taken_is_reported_once_whatever_happens() {
    let seeds = match std::env::var("SUBMITTER_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..CASES).map(|_| fastrand::u64(..)).collect(),
    };
    for seed in seeds {
        let shown = ShowOnPanic(seed);
        one_case(seed);
        std::mem::forget(shown);
    }
}

struct ShowOnPanic(u64);

impl Drop for ShowOnPanic {
    fn drop(&mut self) {
        eprintln!("to see this again: SUBMITTER_SEED={}", self.0);
    }
}

/// Random answers, panics and observers' failures, and several stops at random moments.
fn one_case(seed: u64) {
    let dice = Dice(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))));
    let recorder = Arc::new(Recorder::default());
    let options = SubmitterOptions {
        concurrency: dice.roll(1..40) as u32,
        group_limit: dice.roll(1..20),
        drain_limit: Duration::from_micros(dice.roll(0..3_000) as u64),
        poll_interval: Duration::from_millis(1),
        sending_limit: Duration::from_millis(2),
        seed: Some(seed),
        ..options()
    };
    let mut stopped = builder(0, dice.sender(), &recorder)
        .with_queue(dice.queue())
        .with_observer(Arc::new(Single { dice: dice.clone(), recorder: Arc::clone(&recorder) }))
        .with_group_observer(Arc::new(Group { dice: dice.clone(), recorder: recorder.clone() }))
        .with_options(options)
        .build()
        .unwrap();

    for _ in 0..dice.roll(1..4) {
        let until = dice.roll(0..COUNT) as u64;
        let running = stopped.run().unwrap();
        while running.stats().taken < until {
            std::thread::yield_now();
        }
        stopped = running.stop().unwrap();
        check(&recorder, stopped.undelivered(), stopped.counters().read().taken);
    }
    let running = stopped.run().unwrap();
    while running.stats().taken < COUNT as u64 {
        std::thread::yield_now();
    }
    let counters = running.counters();
    let told = running.wait_for_shutdown();
    let stats = counters.read();
    assert_eq!((stats.taken, stats.under_way()), (COUNT as u64, 0));
    assert_eq!(told.is_ok(), stats.undelivered == 0);
    let reported = recorder.outcomes().len() as u64 + stats.undelivered;
    assert_eq!(reported, stats.taken);
}

/// What the group observer knows and what is kept for it are together what was taken, each once.
fn check(recorder: &Recorder, kept: &[SubmissionOutcome<GlobalScopeId>], taken: u64) {
    let known = recorder.outcomes().into_iter().map(|(batch, _)| batch);
    let mut all: Vec<String> = known.chain(kept.iter().map(|o| o.batch_header.clone())).collect();
    all.sort();
    assert_eq!(all, names(0..taken as usize));
    recorder.notes.change(|notes| {
        let mut ended: Vec<&str> = notes
            .iter()
            .filter(|note| note.status.is_some() || note.message.is_some())
            .map(|note| note.batch.as_str())
            .collect();
        ended.sort_unstable();
        let ended_once = ended.windows(2).all(|pair| pair[0] != pair[1]);
        assert!(ended_once && ended.len() == taken as usize, "{} of {taken}", ended.len());
    });
}

#[derive(Clone)]
struct Dice(Arc<Mutex<fastrand::Rng>>);

impl Dice {
    fn roll(&self, range: std::ops::Range<usize>) -> usize {
        self.0.lock().unwrap().usize(range)
    }

    fn one_in(&self, count: usize) -> bool {
        self.roll(0..count) == 0
    }

    fn queue(&self) -> impl Iterator<Item = Submission<GlobalScopeId>> + Send + use<> {
        let (dice, mut waiting) = (self.clone(), submissions(0..COUNT).into_iter());
        std::iter::from_fn(move || match dice.roll(0..20) {
            0 => panic!("the queue panics"),
            1 => None,
            _ => waiting.next(),
        })
    }

    fn sender(
        &self,
    ) -> Arc<Sender<impl Fn(&Submission<GlobalScopeId>) -> Answering + Send + Sync + use<>>> {
        let dice = self.clone();
        Arc::new(Sender(move |_: &Submission<GlobalScopeId>| {
            assert!(!dice.one_in(20), "the sender panics at once");
            let (kind, pauses) = (dice.roll(0..9), dice.roll(0..30));
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
            }) as Answering
        }))
    }
}

/// Records before it panics.
struct Single {
    dice: Dice,
    recorder: Arc<Recorder>,
}

impl SubmitterObserver for Single {
    type Id = GlobalScopeId;

    fn notify(&self, batch: String, id: GlobalScopeId, s: Option<u16>, m: Option<String>) {
        self.recorder.notify(batch, id, s, m);
        assert!(!self.dice.one_in(20), "the observer panics");
    }
}

/// Fails and panics before it records.
struct Group {
    dice: Dice,
    recorder: Arc<Recorder>,
}

impl GroupObserver for Group {
    type Id = GlobalScopeId;

    fn notify_group(&self, group: &[SubmissionOutcome<GlobalScopeId>]) -> BatchResult<()> {
        match self.dice.roll(0..8) {
            0 => panic!("the group observer panics"),
            1..4 => Err(BatchError::Unavailable("the database".to_owned())),
            _ => self.recorder.notify_group(group),
        }
    }
}
