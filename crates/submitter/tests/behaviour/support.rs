//! Senders and observers that tests can block and wait for.

use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use grid_batch_core::ledger::{
    GroupObserver, Outcome, Submission, SubmissionAnswer, SubmissionOutcome,
};
use grid_batch_core::{BatchResult, GlobalScopeId};
use grid_batch_nodes::NodePool;
use grid_batch_submitter::{
    Backoff, BatchRunningSubmitter, RunnableSubmitter, SubmissionSender, SubmitterBuilder,
    SubmitterObserver, SubmitterOptions,
};
pub use grid_batch_test_support::watched::WatchedValue;
use tokio::sync::Semaphore;

pub type AnswerFuture = Pin<Box<dyn Future<Output = SubmissionAnswer> + Send>>;

/// A sender that calls a function.
pub struct FnSender<F>(pub F);

impl<F> SubmissionSender for FnSender<F>
where
    F: Fn(&Submission<GlobalScopeId>) -> AnswerFuture + Send + Sync,
{
    type Id = GlobalScopeId;

    fn send<'a>(&'a self, _: &'a str, submission: &'a Submission<GlobalScopeId>) -> AnswerFuture {
        (self.0)(submission)
    }
}

/// A sender that accepts every batch, but answers only as often as it is allowed to.
#[derive(Clone)]
pub struct Gate {
    pub arrived: Arc<WatchedValue<usize>>,
    open: Arc<Semaphore>,
}

impl Gate {
    pub fn closed() -> Self {
        Self { arrived: Arc::default(), open: Arc::new(Semaphore::new(0)) }
    }

    pub fn allow(&self, count: usize) {
        self.open.add_permits(count);
    }

    pub fn sender(&self) -> Arc<dyn SubmissionSender<Id = GlobalScopeId>> {
        let gate = self.clone();
        Arc::new(FnSender(move |_: &Submission<GlobalScopeId>| {
            gate.arrived.change(|count| *count += 1);
            let open = Arc::clone(&gate.open);
            Box::pin(async move {
                open.acquire().await.unwrap().forget();
                answer(Outcome::Accepted)
            }) as AnswerFuture
        }))
    }
}

/// An observer of both kinds that records its notifications.
#[derive(Default)]
pub struct Recorder {
    pub notifications: WatchedValue<Vec<Notification>>,
    pub outcomes: WatchedValue<Vec<SubmissionOutcome<GlobalScopeId>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub batch: String,
    pub status: Option<u16>,
    pub message: Option<String>,
}

impl Recorder {
    pub fn outcomes(&self) -> Vec<(String, Outcome)> {
        self.outcomes.change(|outcomes| {
            outcomes.iter().map(|o| (o.batch_header.clone(), o.answer.outcome)).collect()
        })
    }

    /// The number of batches with each outcome.
    pub fn count_by_outcome(&self) -> BTreeMap<Outcome, usize> {
        let mut counts = BTreeMap::new();
        for (_, outcome) in self.outcomes() {
            *counts.entry(outcome).or_default() += 1;
        }
        counts
    }

    #[track_caller]
    pub fn wait_for(&self, count: usize) {
        self.outcomes.wait_until(|outcomes| outcomes.len() >= count);
    }

    #[track_caller]
    pub fn assert_each_once(&self, count: usize) {
        let mut batches: Vec<String> = self.outcomes().into_iter().map(|(b, _)| b).collect();
        batches.sort();
        assert_eq!(batches, names(0..count));
    }
}

impl SubmitterObserver for Recorder {
    type Id = GlobalScopeId;

    fn notify(
        &self,
        batch: String,
        _: GlobalScopeId,
        status: Option<u16>,
        message: Option<String>,
    ) {
        self.notifications.change(|all| all.push(Notification { batch, status, message }));
    }
}

impl GroupObserver for Recorder {
    type Id = GlobalScopeId;

    fn notify_group(&self, group: &[SubmissionOutcome<GlobalScopeId>]) -> BatchResult<()> {
        self.outcomes.change(|outcomes| outcomes.extend_from_slice(group));
        Ok(())
    }
}

/// Options with short delays and long limits.
pub fn options() -> SubmitterOptions {
    let backoff = Backoff { first: Duration::from_millis(1), longest: Duration::from_millis(4) };
    SubmitterOptions {
        poll_interval: Duration::from_hours(1),
        sending_limit: Duration::from_secs(100),
        total_limit: Duration::from_secs(1_000),
        drain_limit: Duration::from_secs(100),
        worker_threads: 2,
        observer_backoff: backoff,
        seed: Some(1),
        ..SubmitterOptions::default()
    }
}

/// A builder with these submissions, sender and group observer.
pub fn builder(
    count: usize,
    sender: Arc<dyn SubmissionSender<Id = GlobalScopeId>>,
    recorder: &Arc<Recorder>,
) -> SubmitterBuilder<GlobalScopeId> {
    SubmitterBuilder::new()
        .with_queue(submissions(0..count))
        .with_sender(sender)
        .with_url_resolver(NodePool::new(["http://ledger"]).resolver())
        .with_group_observer(Arc::<Recorder>::clone(recorder))
        .with_options(options())
}

pub fn run(builder: SubmitterBuilder<GlobalScopeId>) -> BatchRunningSubmitter<GlobalScopeId> {
    builder.build().unwrap().run().unwrap()
}

pub fn submissions(numbers: std::ops::Range<usize>) -> Vec<Submission<GlobalScopeId>> {
    names(numbers).into_iter().map(submission).collect()
}

pub fn submission(name: String) -> Submission<GlobalScopeId> {
    Submission::new(name, GlobalScopeId, b"bytes".to_vec())
}

/// Names whose order is that of their numbers.
pub fn names(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("batch-{number:05}")).collect()
}

pub fn answer(outcome: Outcome) -> SubmissionAnswer {
    let status = match outcome {
        Outcome::Accepted => Some(202),
        Outcome::Busy => Some(503),
        Outcome::Rejected => Some(400),
        Outcome::Refused => Some(401),
        Outcome::NotSent
        | Outcome::Parked
        | Outcome::PoolParked
        | Outcome::Committed
        | Outcome::RefusedBatch
        | Outcome::NotProvedNew
        | Outcome::Ambiguous => None,
    };
    SubmissionAnswer { outcome, status, message: None, retry_after: None }
}
