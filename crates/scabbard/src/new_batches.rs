//! Proofs that a batch is new. After a restart, or after a hundred later batches, a node does not know a batch any more
//! that it has committed, and would execute it again.

use std::{sync::Arc, time::Duration};

use futures_util::{
    StreamExt,
    future::{Either, ready, select},
};
use grid_batch_core::ledger::{CommitHistory, HistoryFacts, Outcome, SubmissionAnswer};
use grid_batch_core::{BatchError, BatchResult, ItemId, MonotonicTime, ServiceId};
use grid_batch_support::ServicePattern;
use log::{info, warn};
use tokio::pin;

use crate::{
    batch_history::{BatchKey, Unreported},
    context::{ScabbardContext, parse_scope},
    events::ServiceEventStream,
    observed_nodes::{EventSource, ObservedNode, SubscriptionId},
    sender::try_again,
};

/// What happens to a batch that is not proved to be new because the history of its service is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownHistory {
    /// It is held.
    #[default]
    Hold,
    /// It is refused when it is submitted, unless its client declares it as new.
    Refuse,
    /// It is sent. This requires that clients submit each batch of the service only through this server, or never again
    /// after it was committed.
    Send,
}

/// What happens to batches that are not proved to be new.
#[derive(Debug, Clone, Default)]
pub struct NewBatchRules(Vec<(ServicePattern, UnknownHistory)>);

impl NewBatchRules {
    /// The longest pattern that matches a service applies. If none matches, batches are held.
    pub fn new(rules: impl IntoIterator<Item = (ServicePattern, UnknownHistory)>) -> Self {
        let mut rules: Vec<(ServicePattern, UnknownHistory)> = rules.into_iter().collect();
        rules.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.to_string().len()));
        Self(rules)
    }

    fn of(&self, service: &ServiceId) -> UnknownHistory {
        let rule = self.0.iter().find(|(pattern, _)| pattern.matches(service));
        rule.map_or(UnknownHistory::Hold, |(_, rule)| *rule)
    }

    fn is_known(&self, service: &ServiceId) -> bool {
        self.of(service) == UnknownHistory::Send
    }
}

/// Since when batches of a service have waited for a proof that they are new, and when one was last tried.
#[derive(Default)]
pub(crate) struct ProofWait(Option<(MonotonicTime, MonotonicTime)>);

impl ProofWait {
    /// How long a batch waits until the events of its service are subscribed to and replayed.
    const LONGEST: Duration = Duration::from_secs(10);
    const RETRY_AFTER: Duration = Duration::from_millis(300);
    /// If no batch of the service is tried for this time, the wait ends and the next batch begins a new one.
    const ENDS_AFTER: Duration = Duration::from_secs(30);

    /// Whether batches of the service, one of which is tried now, have waited long enough.
    fn is_over(&mut self, now: MonotonicTime) -> bool {
        let lasts = |(_, tried_at): &(_, MonotonicTime)| now.since(*tried_at) < Self::ENDS_AFTER;
        let since = self.0.filter(lasts).map_or(now, |(since, _)| since);
        self.0 = Some((since, now));
        now.since(since) >= Self::LONGEST
    }
}

impl ScabbardContext {
    /// Whether the live events of the service have shown everything that was committed since its history was known.
    /// Always true without a store, because no proof is required then.
    pub(crate) fn is_history_shown(&self, service: &ServiceId) -> bool {
        let Some(history) = self.history_of_services.get() else { return true };
        let generation = history.generation();
        self.observed.read(service, EventSource::Node, |node| node.is_continuous(generation))
    }

    /// The anchor of the service, if there is one and its history is known.
    pub(crate) async fn anchor(
        &self,
        service: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<ItemId>> {
        let facts = self.read_history(service, batch_id).await?;
        Ok(facts.anchor.filter(|_| facts.is_known == Some(true)))
    }

    async fn read_history(
        &self,
        service: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<HistoryFacts> {
        let (service, batch_id) = (service.clone(), *batch_id);
        let read = move |history: &dyn CommitHistory| history.read_history(&service, &batch_id);
        self.with_history(read).await
    }

    /// Reads the store's history of services on a thread that may block, as soon as a place is free. It may continue
    /// after the future is dropped, and keeps its place until it ends.
    async fn with_history<T: Default + Send + 'static>(
        &self,
        run: impl FnOnce(&dyn CommitHistory) -> BatchResult<T> + Send + 'static,
    ) -> BatchResult<T> {
        let Some(history) = self.history_of_services.get().cloned() else {
            return Ok(T::default());
        };
        let read = self.history_reads.run(move || run(&*history)).await;
        read.unwrap_or_else(|panic| Err(panic.into()))
    }

    /// Checks that a batch that no node has was never committed. The error is the answer if that is not proved.
    pub(crate) async fn check_is_new(
        self: &Arc<Self>,
        batch: &BatchKey,
        Unreported { shows_history, is_complete, .. }: Unreported,
    ) -> Result<(), SubmissionAnswer> {
        let (service, batch_id) = batch;
        if shows_history || self.is_history_shown(service) {
            return Ok(());
        }
        let not_read = |error: BatchError| {
            let message = format!("cannot read the history of the service: {error}");
            SubmissionAnswer::without_response(Outcome::NotSent, message)
        };
        let generation = self.history_generation();
        let facts = self.read_history(service, batch_id).await.map_err(not_read)?;
        let live = self.observed.at_post(service).node;
        // If the setting declares the history as known, no node needs to be asked.
        let is_declared_known = self.rules.get().is_some_and(|rules| rules.is_known(service));
        // `None`: the subscription has ended meanwhile, or its node does not answer.
        let is_whole = match live {
            _ if is_declared_known => Some(true),
            Some(id) => {
                let checked = self.check_subscription(service, EventSource::Node).await;
                checked.filter(|checked| checked.id == id).map(|checked| checked.is_whole)
            }
            None => Some(self.is_whole_replay(service).await),
        };
        if is_whole == Some(true) {
            self.set_known(service, facts.is_known, true).await.map_err(not_read)?;
            if let Some(id) = live {
                self.set_continuous(service, id, generation);
            }
            return Ok(());
        }
        let now = self.clock.monotonic();
        let is_over =
            self.observed.update(service, EventSource::Node, |node| node.proof_wait.is_over(now));
        let may_become_whole =
            self.observed.read(service, EventSource::Node, ObservedNode::replayed).is_some();
        if !is_over && (live.is_none() || is_whole.is_none() || may_become_whole) {
            let message = "the events of the service are not replayed yet; they may prove that the batch is new";
            return Err(try_again(ProofWait::RETRY_AFTER, message));
        }
        if !is_complete {
            // Nothing is committed while a node of the circuit is away.
            let message = "a peer does not answer; its answer may prove that the batch is new";
            return Err(SubmissionAnswer::without_response(Outcome::NotSent, message.to_owned()));
        }
        self.set_known(service, facts.is_known, false).await.map_err(not_read)?;
        if facts.is_new { Ok(()) } else { Err(not_proved_new(service, batch_id)) }
    }

    /// Whether a node replays all transactions of the service, which are then stored. It is used for services without a
    /// live subscription, and opens a websocket only for the replay.
    async fn is_whole_replay(self: &Arc<Self>, service: &ServiceId) -> bool {
        let Ok(scope) = parse_scope(service.as_str()) else { return false };
        let nodes = self.nodes_of_batch(&scope, "").unwrap_or_default();
        let Some(node) = nodes.first() else { return false };
        let source = EventSource::Replay;
        let opened = ServiceEventStream::open(self, source, node, &scope, &scope).await;
        let Ok(events) = opened else { return false };
        let reading = events.for_each(|_| ready(()));
        let checking = async {
            // The replay lasts longer while events arrive.
            while self.observed.read(service, source, ObservedNode::replayed).is_some() {
                match self.check_subscription(service, source).await {
                    Some(checked) if checked.is_whole => return true,
                    Some(_) => {}
                    None => return false,
                }
            }
            false
        };
        pin!(reading, checking);
        match select(reading, checking).await {
            Either::Left(_) => false,
            Either::Right((is_whole, _)) => is_whole,
        }
    }

    /// Records that all commits of the service were accounted for in this generation of the store, if this subscription
    /// is still live.
    pub(crate) fn set_continuous(&self, service: &ServiceId, id: SubscriptionId, generation: i64) {
        let node = EventSource::Node;
        self.observed.update(service, node, |node| node.set_continuous(id, generation));
    }

    pub(crate) fn history_generation(&self) -> i64 {
        self.history_of_services.get().map_or(0, |history| history.generation())
    }

    /// Stores whether the history of the service is known, if this has changed.
    async fn set_known(
        self: &Arc<Self>,
        service: &ServiceId,
        before: Option<bool>,
        is_known: bool,
    ) -> BatchResult<()> {
        if before == Some(is_known) {
            return Ok(());
        }
        if is_known {
            info!(service:%; "every batch that the service has committed is known");
        } else {
            warn!(
                service:%;
                "it is not known which batches the service has committed: batches that are not proved to be new \
                 are held; if no client submits a committed batch again, set services.*.unknown_history \
                 to \"send\" for the service"
            );
        }
        self.write_history(Some((service.clone(), is_known))).await
    }

    /// Stores the transactions that events have named, and then whether the history of a service is known. It may
    /// continue after the future is dropped.
    pub(crate) async fn write_history(
        self: &Arc<Self>,
        known: Option<(ServiceId, bool)>,
    ) -> BatchResult<()> {
        let Some(history) = self.history_of_services.get().cloned() else { return Ok(()) };
        let context = Arc::clone(self);
        let write = move |known: Vec<_>| context.write_histories(&*history, &known);
        let written = self.history_writes.run(known, write).await;
        written.unwrap_or_else(|panic| Err(panic.into()))
    }

    fn write_histories(
        &self,
        history: &dyn CommitHistory,
        known: &[Option<(ServiceId, bool)>],
    ) -> BatchResult<()> {
        // The history is known only if the transactions of other clients are stored first.
        self.foreign_transactions.store_heard(history)?;
        for is_known in [true, false] {
            let services = known.iter().flatten().filter(|(_, known)| *known == is_known);
            let services: Vec<ServiceId> = services.map(|(service, _)| service.clone()).collect();
            if !services.is_empty() {
                history.set_history_known(&services, is_known)?;
            }
        }
        Ok(())
    }

    /// Why a batch of the service that is submitted now is refused.
    pub(crate) async fn refuse_unknown_history(
        &self,
        service: &ServiceId,
        is_new: bool,
    ) -> Result<(), String> {
        let refuses = |rules: &NewBatchRules| rules.of(service) == UnknownHistory::Refuse;
        let is_refused = !is_new && self.rules.get().is_some_and(refuses);
        if !is_refused || parse_scope(service.as_str()).is_err() {
            return Ok(());
        }
        let name = service.clone();
        let read = move |history: &dyn CommitHistory| history.is_history_known(&name);
        let is_known = self.with_history(read).await;
        match is_known {
            // The sender will find out whether the history is known.
            Ok(None | Some(true)) | Err(_) => Ok(()),
            Ok(Some(false)) => Err(format!(
                "it is not known which batches the service {service} has committed before, and it would apply \
                 this one again; if it was never committed, submit it with new=true"
            )),
        }
    }
}

/// The answer for a batch that is to be held until an operator decides.
fn not_proved_new(service: &ServiceId, batch_id: &ItemId) -> SubmissionAnswer {
    warn!(batch_id:%, service:%; "the batch was not sent, because it may have been committed before");
    let message = "the service may have committed it before, at a time when this database did not follow the \
                   service, and would apply it again";
    SubmissionAnswer::without_response(Outcome::NotProvedNew, message.to_owned())
}
