use std::{collections::VecDeque, fmt, marker::PhantomData, sync::Arc, time::Duration};

use grid_batch_core::{
    BatchResult, Clock, RoundStore, ScopeId, ServiceId, Submission, SystemClock, TakenBatch,
    Timestamp,
};
use log::{error, warn};

use crate::WakeUp;

/// How a queue takes its rounds.
#[derive(Debug, Clone)]
pub struct QueueOptions {
    /// At most so many batches, and so many services, in one round.
    pub round: usize,
    /// How often to look through the services for what nobody woke the queue for.
    pub poll_interval: Duration,
    /// What was taken so long ago and not yet given is not given any more, but given back: whoever
    /// asks so seldom must not find that its batches are another's by now.
    pub hold_limit: Duration,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            round: 100,
            poll_interval: Duration::from_secs(1),
            hold_limit: Duration::from_secs(60),
            clock: Arc::new(SystemClock),
        }
    }
}

/// The queue that a submitter polls.
///
/// `next` gives `None` when there is nothing to be sent now; there may be later. What it has given
/// is marked in the store as being with a submitter; so is the rest of the round that it holds,
/// and [`held`](Self::held) says how much that is. A queue that is dropped gives that back.
pub struct BatchQueue<S: ScopeId, R: RoundStore> {
    store: R,
    wake_up: WakeUp,
    options: QueueOptions,
    round: VecDeque<TakenBatch>,
    taken_at: Timestamp,
    search: Search,
    scope: PhantomData<fn() -> S>,
}

/// How far the queue is with looking through the services in turn.
#[derive(Debug, Default)]
struct Search {
    after: Option<ServiceId>,
    /// When to begin; `None`: go on at once.
    next: Option<Timestamp>,
}

impl<S: ScopeId, R: RoundStore> BatchQueue<S, R> {
    /// A queue of what `store` has ready, hurried by `wake_up`.
    pub fn new(store: R, wake_up: WakeUp, options: QueueOptions) -> Self {
        let (round, taken_at) = (VecDeque::new(), options.clock.now());
        let (search, scope) = (Search::default(), PhantomData);
        Self { store, wake_up, options, round, taken_at, search, scope }
    }

    /// How many batches were taken from the store and not yet given.
    pub fn held(&self) -> usize {
        self.round.len()
    }

    /// Takes the next round. Should the store fail, the next call tries again.
    ///
    /// However many were woken, a part of the round is kept for those that were not.
    fn refill(&mut self) {
        let now = self.options.clock.now();
        let searched = if self.search.is_due(now) { self.options.round.div_ceil(4) } else { 0 };
        let woken = self.wake_up.take(self.options.round.saturating_sub(searched));
        match self.take_round(&woken, now) {
            Ok(round) => {
                self.round.extend(round);
                self.taken_at = now;
            }
            Err(error) => {
                warn!(error:% = error; "the next round could not be taken");
                self.wake_up.give_back(woken);
            }
        }
    }

    /// Gives back what it holds.
    fn give_back(&mut self) {
        let held = self.round.make_contiguous();
        if held.is_empty() {
            return;
        }
        if let Err(error) = self.store.give_back(held) {
            // They are found with a submitter that is gone, and are in doubt until there is evidence.
            error!(batches = held.len(), error:% = error; "batches could not be given back");
        }
        self.round.clear();
    }

    fn take_round(&mut self, woken: &[ServiceId], now: Timestamp) -> BatchResult<Vec<TakenBatch>> {
        let mut services = woken.to_vec();
        services.extend(self.search(self.options.round.saturating_sub(woken.len()), now)?);
        services.sort_unstable();
        services.dedup();
        services.retain(|service| is_of_this_ledger::<S>(service));
        if services.is_empty() {
            return Ok(Vec::new());
        }
        self.store.take_round(&services)
    }

    /// Up to `limit` services that are ready, where it is time to look for them.
    fn search(&mut self, limit: usize, now: Timestamp) -> BatchResult<Vec<ServiceId>> {
        if limit == 0 || !self.search.is_due(now) {
            return Ok(Vec::new());
        }
        let found = self.store.ready_services(self.search.after.as_ref(), limit)?;
        let is_the_end = found.len() < limit;
        self.search = match found.last() {
            Some(last) if !is_the_end => Search { after: Some(last.clone()), next: None },
            // The end of a turn that began in the middle: the beginning is still to be looked at.
            _ if self.search.after.is_some() => Search::default(),
            _ => Search { after: None, next: Some(now.plus(self.options.poll_interval)) },
        };
        Ok(found)
    }
}

impl Search {
    fn is_due(&self, now: Timestamp) -> bool {
        self.next.is_none_or(|next| next <= now)
    }
}

impl<S: ScopeId, R: RoundStore> Iterator for BatchQueue<S, R> {
    type Item = Submission<S>;

    fn next(&mut self) -> Option<Submission<S>> {
        if self.options.clock.now().since(self.taken_at) >= self.options.hold_limit {
            self.give_back();
        }
        if self.round.is_empty() {
            self.refill();
        }
        self.round.pop_front().and_then(into_submission)
    }
}

impl<S: ScopeId, R: RoundStore> Drop for BatchQueue<S, R> {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl<S: ScopeId, R: RoundStore> fmt::Debug for BatchQueue<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchQueue")
            .field("held", &self.round.len())
            .field("wake_up", &self.wake_up)
            .field("search", &self.search)
            .finish_non_exhaustive()
    }
}

/// Asked before its batch is marked: what cannot be sent must not look as if it were on its way.
fn is_of_this_ledger<S: ScopeId>(service: &ServiceId) -> bool {
    match S::from_service_id(service) {
        Ok(_) => true,
        Err(error) => {
            error!(service:% = service, error:% = error; "the service's batches cannot be sent");
            false
        }
    }
}

fn into_submission<S: ScopeId>(taken: TakenBatch) -> Option<Submission<S>> {
    let scope = S::from_service_id(&taken.service_id).ok()?;
    let attempt_id = taken.attempt_id();
    let submission = Submission::new(taken.batch_id.to_string(), scope, taken.serialized_batch);
    Some(submission.with_attempt_id(attempt_id))
}
