use std::{
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use grid_batch_core::MonotonicTime;
use grid_batch_core::ledger::{OutageKind, Outcome};
use grid_batch_support::lock;
use tokio::sync::Notify;

use crate::{Identity, contact::Contact};

/// What is known of one node.
#[derive(Debug)]
pub struct Node {
    url: String,
    name: String,
    state: Mutex<NodeState>,
    /// Notified when the node should be asked at once which ledger it belongs to.
    pub(crate) wanted: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct NodeState {
    pub(crate) contact: Contact,
    pub(crate) identity: Identity,
    /// When a submission to the node last failed, or was last tried after a failure. `None`: the last one did not fail.
    pub(crate) submission_failed_at: Option<MonotonicTime>,
}

impl Node {
    pub(crate) fn new(url: String, name: String) -> Self {
        Self { url, name, state: Mutex::default(), wanted: Notify::new() }
    }

    /// The URL, which may hold secrets.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Scheme, host and port of the URL.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its ledger, as it has reported it.
    pub fn identity(&self) -> Identity {
        self.lock().identity.clone()
    }

    /// Whether it confirmed its ledger when it was last asked.
    pub fn is_confirmed(&self) -> bool {
        self.lock().identity.is_confirmed()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, NodeState> {
        lock(&self.state)
    }
}

impl NodeState {
    /// A node that failed is tried again after this time, unless it is known earlier that it works.
    const RETRY_AFTER: Duration = Duration::from_secs(30);

    /// When the node last failed, unless it is known since then that it works.
    pub(crate) fn failed_at(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        let unanswered_at = self.unanswered(now).and_then(|_| self.contact.unanswered_at());
        self.submission_failed_at.max(unanswered_at).max(self.identity.problem_at())
    }

    /// Whether the next batch is sent to this node, and not to another one. A node that failed is tried with one
    /// batch, and the others wait for its answer.
    pub(crate) fn take_if_usable(&mut self, now: MonotonicTime) -> bool {
        let is_usable = self.failed_at(now).is_none_or(|at| now.since(at) >= Self::RETRY_AFTER);
        if is_usable {
            self.take(now);
        }
        is_usable
    }

    pub(crate) fn take(&mut self, now: MonotonicTime) {
        self.submission_failed_at = self.submission_failed_at.map(|_| now);
    }

    /// For how long the node has not answered, and why.
    pub(crate) fn unanswered(&self, now: MonotonicTime) -> Option<(Duration, &str)> {
        self.contact.failure().and_then(|(since, reason)| shown(since, reason, now))
    }

    /// What the node does not do, for how long, and why. A node that does not answer does not report its ledger either,
    /// but only the missing answer is returned.
    pub(crate) fn outage(&self, now: MonotonicTime) -> Option<(OutageKind, Duration, &str)> {
        let kind = match self.contact.failure() {
            Some(_) => OutageKind::Unanswered,
            None => OutageKind::Unidentified,
        };
        let unconfirmed =
            || self.identity.unconfirmed().and_then(|(since, reason)| shown(since, reason, now));
        self.unanswered(now).or_else(unconfirmed).map(|(lasted, reason)| (kind, lasted, reason))
    }
}

/// For how long a node has failed, and why. `None`: for too short a time to be shown.
fn shown(since: MonotonicTime, reason: &str, now: MonotonicTime) -> Option<(Duration, &str)> {
    let lasted = now.since(since);
    (lasted >= Contact::SHOWN_AFTER).then_some((lasted, reason))
}

/// Whether another node might have succeeded.
pub(crate) fn is_failure(outcome: Outcome) -> bool {
    match outcome {
        Outcome::NotSent | Outcome::Ambiguous | Outcome::Refused => true,
        Outcome::Accepted
        | Outcome::Committed
        | Outcome::Busy
        | Outcome::Parked
        | Outcome::PoolParked
        | Outcome::Rejected
        | Outcome::RefusedBatch
        | Outcome::NotProvedNew => false,
    }
}
