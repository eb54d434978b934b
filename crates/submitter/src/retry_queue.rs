use std::{
    collections::{BTreeSet, HashMap, VecDeque, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use grid_batch_core::ledger::{OutcomeClass, Submission, SubmissionOutcome};
use grid_batch_core::queue::{DelayOptions, FailedAttempts, NextStep, RetryPolicy};
use grid_batch_core::{Clock, Moment, MonotonicTime, ScopeId, ServiceId, SystemClock};
use grid_batch_support::{lock, rng};
use log::warn;

use crate::{SubmitterWaker, leader::Queue};

/// A queue around your own queue that sends batches again that the ledger certainly did not accept.
///
/// One batch of a service is sent at a time, and the next one follows when the ledger has accepted or rejected it, so
/// none overtakes another. A batch that was not sent, or that a busy ledger did not take, is sent again after a delay
/// that doubles, or after what the ledger asks for. Your observers of groups get only outcomes after which it is not
/// sent again.
///
/// A service stops at a batch that the ledger refuses again and again, and at a batch whose outcome is ambiguous, because
/// that could be applied twice. It continues after [`send_again`](Self::send_again) or [`give_up`](Self::give_up).
///
/// Waiting batches are kept in memory. Your queue must not lend batches for a limited time, because each try counts as
/// if the batch had been taken then. Clones share the queue.
///
/// ```
/// use grid_batch_core::{GlobalScopeId, ledger::Submission, queue::DelayOptions};
/// use grid_batch_submitter::{RetryQueue, SubmitterBuilder};
///
/// fn with_retries(own_queue: Vec<Submission<GlobalScopeId>>) -> SubmitterBuilder<GlobalScopeId> {
///     let queue = RetryQueue::new(own_queue, DelayOptions::default());
///     SubmitterBuilder::new().with_retry_queue(&queue)
/// }
/// ```
pub struct RetryQueue<S: ScopeId> {
    shared: Arc<Shared<S>>,
    clock: Arc<dyn Clock>,
}

struct Shared<S: ScopeId> {
    own: Mutex<Queue<S>>,
    retries: Mutex<Retries<S>>,
    longest_delay: Duration,
    waker: OnceLock<SubmitterWaker>,
}

/// The batches that were taken from the queue and are not done, by service.
struct Retries<S: ScopeId> {
    policy: RetryPolicy,
    rng: fastrand::Rng,
    services: HashMap<ServiceId, Service<S>>,
    /// The services whose first batch can be sent at this time.
    due: BTreeSet<(MonotonicTime, ServiceId)>,
    /// How many batches there are beyond the first ones of the services.
    behind: usize,
}

/// A service whose first batch is not done.
struct Service<S: ScopeId> {
    first: Submission<S>,
    behind: VecDeque<Submission<S>>,
    failed: FailedAttempts,
    state: State<S>,
}

/// The state of a first batch.
enum State<S: ScopeId> {
    BeingSent,
    /// It is in `due`.
    Waiting,
    /// Its service has stopped at it, because of this outcome.
    Stopped(SubmissionOutcome<S>),
}

impl<S: ScopeId> RetryQueue<S> {
    /// Limit on the number of batches that wait in memory behind others of their services. At the limit, your queue
    /// is not polled.
    pub const MOST_BEHIND: usize = 1_000;

    /// A retry queue around this queue.
    pub fn new<Q>(queue: Q, options: DelayOptions) -> Self
    where
        Q: IntoIterator<Item = Submission<S>, IntoIter: Send + 'static>,
    {
        let longest_delay = options.longest_delay();
        let retries = Retries {
            rng: rng(options.seed),
            policy: RetryPolicy::new(options),
            services: HashMap::new(),
            due: BTreeSet::new(),
            behind: 0,
        };
        let shared = Shared {
            own: Mutex::new(Box::new(queue.into_iter())),
            retries: Mutex::new(retries),
            longest_delay,
            waker: OnceLock::new(),
        };
        Self { shared: Arc::new(shared), clock: Arc::new(SystemClock) }
    }

    /// Uses this clock instead of the system's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The time until a batch can be sent again; `None` if none waits for that.
    pub fn next_due(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        lock(&self.shared.retries).due.first().map(|(at, _)| at.since(now))
    }

    /// The last outcomes of the batches at which services have stopped.
    pub fn stopped(&self) -> Vec<SubmissionOutcome<S>> {
        let retries = lock(&self.shared.retries);
        let outcome = |service: &Service<S>| match &service.state {
            State::Stopped(outcome) => Some(outcome.clone()),
            State::BeingSent | State::Waiting => None,
        };
        retries.services.values().filter_map(outcome).collect()
    }

    /// Sends the batch again at which this service has stopped. If the outcome was ambiguous, the caller must have
    /// evidence that the ledger does not have the batch. Returns whether the service had stopped.
    pub fn send_again(&self, service_id: &ServiceId) -> bool {
        self.resume(service_id, Retries::send_again)
    }

    /// Gives up the batch at which this service has stopped, and sends the next one. Returns whether it had stopped.
    pub fn give_up(&self, service_id: &ServiceId) -> bool {
        self.resume(service_id, Retries::go_on)
    }

    fn resume(
        &self,
        service_id: &ServiceId,
        resume: fn(&mut Retries<S>, &ServiceId, MonotonicTime),
    ) -> bool {
        let mut retries = lock(&self.shared.retries);
        let service = retries.services.get(service_id);
        if !service.is_some_and(|service| matches!(service.state, State::Stopped(_))) {
            return false;
        }
        resume(&mut retries, service_id, self.clock.monotonic());
        drop(retries);
        self.wake();
        true
    }

    /// Wakes this submitter when a batch can be sent.
    pub(crate) fn set_waker(&self, waker: SubmitterWaker) {
        // The first one stays: clones of it wake the same submitter.
        let _ = self.shared.waker.set(waker);
    }

    pub(crate) fn longest_delay(&self) -> Duration {
        self.shared.longest_delay
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.shared.waker.get() {
            waker.wake();
        }
    }

    /// The next step of the batch after this outcome. `None`: the outcome is not about the batch that is being sent.
    pub(crate) fn next_step(&self, outcome: &SubmissionOutcome<S>) -> Option<NextStep> {
        let mut retries = lock(&self.shared.retries);
        let failed = retries.being_sent(outcome)?.failed;
        let (now, random) = (self.clock.monotonic(), retries.rng.f64());
        Some(retries.policy.next_step(&outcome.answer, outcome.deadline, failed, now, random))
    }

    /// Takes this step.
    pub(crate) fn take_step(&self, outcome: &SubmissionOutcome<S>, step: NextStep) {
        let mut retries = lock(&self.shared.retries);
        let Some(service) = retries.being_sent(outcome) else { return };
        let (service_id, now) = (outcome.scope_id.service_id(), self.clock.monotonic());
        match (step, outcome.answer.outcome.class()) {
            (NextStep::Retry(delay), _) => {
                service.failed = service.failed.with(outcome.answer.outcome);
                retries.send_at(service_id, now.plus(delay));
            }
            (NextStep::Report, OutcomeClass::Accepted | OutcomeClass::Rejected) => {
                retries.go_on(service_id, now);
            }
            (NextStep::Report | NextStep::Hold(_), _) => {
                service.state = State::Stopped(outcome.clone());
                drop(retries);
                warn!(
                    batch_id = outcome.batch_header.as_str(), service:% = service_id,
                    outcome:% = outcome.answer.outcome;
                    "the service stops at a batch until the program sends it again or gives it up"
                );
            }
        }
    }
}

impl<S: ScopeId> Retries<S> {
    /// The service, if the outcome is about its batch that is being sent.
    fn being_sent(&mut self, outcome: &SubmissionOutcome<S>) -> Option<&mut Service<S>> {
        let service = self.services.get_mut(outcome.scope_id.service_id())?;
        let is_about_first = service.first.batch_header() == outcome.batch_header;
        (is_about_first && matches!(service.state, State::BeingSent)).then_some(service)
    }

    /// Adds a batch of the own queue, and returns it if no other one of its service is before it.
    fn add(&mut self, submission: Submission<S>) -> Option<Submission<S>> {
        match self.services.entry(submission.scope_id().service_id().clone()) {
            Entry::Occupied(mut service) => {
                service.get_mut().behind.push_back(submission);
                self.behind += 1;
                None
            }
            Entry::Vacant(vacant) => {
                vacant.insert(Service {
                    first: submission.clone(),
                    behind: VecDeque::new(),
                    failed: FailedAttempts::default(),
                    state: State::BeingSent,
                });
                Some(submission)
            }
        }
    }

    /// The first batch of a service that is due.
    fn take_due(&mut self, clock: &dyn Clock) -> Option<Submission<S>> {
        let now = clock.monotonic();
        self.due.first().filter(|(at, _)| *at <= now)?;
        let (_, service_id) = self.due.pop_first()?;
        let service = self.services.get_mut(&service_id)?;
        service.state = State::BeingSent;
        let first = service.first.clone();
        Some(match first.taken_at() {
            Some(_) => first.with_taken_at(Moment::now(clock)),
            None => first,
        })
    }

    /// Sends the first batch of the service at this time.
    fn send_at(&mut self, service_id: &ServiceId, at: MonotonicTime) {
        if let Some(service) = self.services.get_mut(service_id) {
            service.state = State::Waiting;
            self.due.insert((at, service_id.clone()));
        }
    }

    /// Sends the first batch of the service now, as if it had not failed before.
    fn send_again(&mut self, service_id: &ServiceId, now: MonotonicTime) {
        if let Some(service) = self.services.get_mut(service_id) {
            service.failed = FailedAttempts::default();
            self.send_at(service_id, now);
        }
    }

    /// The first batch of the service is done, and the next one is sent now.
    fn go_on(&mut self, service_id: &ServiceId, now: MonotonicTime) {
        let Some(service) = self.services.get_mut(service_id) else { return };
        match service.behind.pop_front() {
            Some(next) => {
                service.first = next;
                self.behind -= 1;
                self.send_again(service_id, now);
            }
            None => drop(self.services.remove(service_id)),
        }
    }
}

impl<S: ScopeId> Iterator for RetryQueue<S> {
    type Item = Submission<S>;

    fn next(&mut self) -> Option<Submission<S>> {
        // Outcomes are recorded while the own queue blocks.
        let mut own = lock(&self.shared.own);
        loop {
            let mut retries = lock(&self.shared.retries);
            let due = retries.take_due(&*self.clock);
            if due.is_some() || retries.behind >= Self::MOST_BEHIND {
                return due;
            }
            drop(retries);
            let submission = own.next()?;
            let first = lock(&self.shared.retries).add(submission);
            if first.is_some() {
                return first;
            }
        }
    }
}

impl<S: ScopeId> Clone for RetryQueue<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), clock: Arc::clone(&self.clock) }
    }
}

impl<S: ScopeId> fmt::Debug for RetryQueue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retries = lock(&self.shared.retries);
        f.debug_struct("RetryQueue")
            .field("services", &retries.services.len())
            .field("due", &retries.due.len())
            .field("behind", &retries.behind)
            .finish_non_exhaustive()
    }
}
