use std::time::Duration;

use futures_util::future::join_all;
use grid_batch_core::{
    BatchResult, Evidence, EvidenceReport, ItemId, LedgerStatus, MonotonicTime, ServiceScopeId,
    UnresolvedBatch,
};
use log::info;

use crate::{
    Scabbard,
    absence::AbsenceFacts,
    batch_history::{BatchKey, FirstPost, Loss, StalledStatus},
    context::parse_scope,
    endings::EndLimits,
    evidence_detail::detail,
    node_reports::{CombinedStatus, NodeReport, no_status},
    observed_nodes::EventSource,
    state_roots::StateRoots,
};

/// A batch that evidence is looked for.
struct Search<'a> {
    unresolved: &'a UnresolvedBatch,
    scope: ServiceScopeId,
    batch: BatchKey,
}

/// Looks for evidence of a batch. Reports that a node has it are always evidence; reports that it
/// has not are evidence only with a proof that it was not applied.
impl Scabbard {
    pub(crate) async fn find(&self, unresolved: &UnresolvedBatch) -> BatchResult<EvidenceReport> {
        let scope = parse_scope(unresolved.service_id.as_str())?;
        let batch = (unresolved.service_id.clone(), unresolved.batch_id);
        let search = Search { unresolved, scope, batch };
        if self.is_committed(&search) {
            return Ok(Evidence::Committed.into());
        }
        let batch_id = unresolved.batch_id.to_string();
        let nodes = self.0.all_nodes(&search.scope, &batch_id)?;
        // The subscriptions and the count from before the proof: what they miss, the proof covers.
        let subscriptions = self.0.observed.at_post(&search.batch.0);
        let observed = self.0.applied.observation_count();
        let queried_at = self.0.clock.monotonic();
        let answers = self.0.ask_all(nodes, &search.batch.0, &[&batch_id], Duration::MAX).await;
        let reports: Vec<_> = answers.iter().map(|answer| answer.about(&batch_id)).collect();
        let facts = self.collect_facts(&search, &reports, queried_at).await;
        // Check the transactions last: then all events that the subscriptions had received when they
        // were checked are among them.
        if self.is_committed(&search) {
            return Ok(Evidence::Committed.into());
        }
        if let Some(error) = no_status(reports.iter()) {
            return Err(error);
        }
        let attempt = unresolved.attempt_id.attempt;
        let ends_in = facts.ends_in(self.0.limits);
        let not_applied = facts.not_applied().filter(|_| !self.may_be_applied(&search));
        if let Some(not_applied) = not_applied
            && ends_in == Some(Duration::ZERO)
        {
            let loss = Loss {
                is_of_only_attempt: facts.is_accepted && facts.is_only_attempt,
                is_explained: facts.ending.is_explained,
            };
            self.0.history.certify_absence(&search.batch, attempt, loss, observed, subscriptions);
            let status = facts.combined.status;
            info!(
                batch_id = batch_id.as_str(), service:% = search.scope, status:? = status,
                proof:? = not_applied; "the batch is absent from the ledger"
            );
            return Ok(facts.absence().into());
        }
        let provable_in = ends_in.filter(|_| not_applied.is_some());
        let text = detail(&self.0, &search.batch.0, &reports, &facts, provable_in);
        let again_in = self.search_again_in(&facts);
        let report = EvidenceReport::with_detail(facts.presence(), text);
        Ok(EvidenceReport { again_in, provable_in, ..report })
    }

    /// Whether a node has reported the batch as committed, or events prove it.
    fn is_committed(&self, search: &Search<'_>) -> bool {
        self.0.history.get(&search.batch).is_committed || self.is_proved_by_events(search)
    }

    /// Whether events prove that the batch was committed: they name all of its transactions; at least
    /// one is in no other batch; and those were not applied before the first POST of this batch.
    fn is_proved_by_events(&self, Search { unresolved, batch, .. }: &Search<'_>) -> bool {
        let record = self.0.history.get(batch);
        let first_post_at = match record.first_post(unresolved.attempt_id.attempt) {
            FirstPost::None => return false,
            FirstPost::Here { at, .. } => Some(at),
            FirstPost::Elsewhere => None,
        };
        let UnresolvedBatch { transaction_ids: all, shared_transaction_ids: shared, .. } =
            unresolved;
        let is_own = |id: &&ItemId| !shared.contains(*id);
        let is_applied = |id: &ItemId| {
            let after = if is_own(&id) { first_post_at } else { None };
            self.0.applied.has_event(&batch.0, id, after)
        };
        all.iter().any(|id| is_own(&id)) && all.iter().all(is_applied)
    }

    /// Whether a transaction of the batch is known to be applied, or could be unnoticed.
    fn may_be_applied(&self, Search { unresolved, batch, .. }: &Search<'_>) -> bool {
        let transactions = &unresolved.transaction_ids;
        transactions.is_empty() || self.0.applied.count(&batch.0, transactions) > 0
    }

    /// What is known besides the reports. Nodes are asked for more only if that can prove something.
    async fn collect_facts(
        &self,
        search: &Search<'_>,
        reports: &[NodeReport],
        queried_at: MonotonicTime,
    ) -> AbsenceFacts {
        let mut facts = self.known_facts(search, reports, queried_at);
        let is_absent_or_stuck =
            !matches!(facts.combined.status, LedgerStatus::Committed | LedgerStatus::Invalid);
        if !is_absent_or_stuck || !facts.combined.is_complete {
            return facts;
        }
        if facts.is_own
            && facts.not_applied().is_none()
            && facts.combined.status != LedgerStatus::Pending
        {
            self.check_subscriptions(search, reports, &mut facts).await;
        }
        let nodes: Vec<_> = reports.iter().map(|report| &report.node).collect();
        facts.state_roots = self.0.compare_state_roots(&search.scope, &nodes).await;
        facts
    }

    /// What is known without asking a node.
    fn known_facts(
        &self,
        search: &Search<'_>,
        reports: &[NodeReport],
        queried_at: MonotonicTime,
    ) -> AbsenceFacts {
        let Search { unresolved, scope, batch } = search;
        let observed = &self.0.observed;
        let attempt = unresolved.attempt_id.attempt;
        let combined = CombinedStatus::new(reports.iter());
        let stalled_for = self.stalled_for(batch, combined, queried_at);
        let record = self.0.history.get(batch);
        let at_node = CombinedStatus::new(reports.iter().filter(|report| !report.is_peer()));
        let mut peers = reports.iter().filter(|report| report.is_peer());
        let (is_own, first) = match record.first_post(attempt) {
            FirstPost::Here { subscriptions: at_post, .. } => (true, at_post.node),
            FirstPost::None | FirstPost::Elsewhere => (false, None),
        };
        AbsenceFacts {
            combined,
            at_node: at_node.status,
            stalled_for,
            is_own,
            is_accepted: record.has_arrived(attempt),
            is_only_attempt: record.is_only_attempt(attempt),
            node_events_are_complete: first.is_some() && observed.caught_up(&batch.0) == first,
            node_subscription_broke: first.is_some_and(|first| {
                observed.read(&batch.0, EventSource::Node, |node| node.has_broken(first))
            }),
            replay_is_whole: false,
            peer_is_watched: false,
            peer_is_valid: peers.any(|report| report.status == Ok(LedgerStatus::Valid)),
            node_coordinates: self.0.node_coordinates(scope),
            state_roots: StateRoots::NotKnown,
            ending: self.0.ending(scope, &record, reports),
        }
    }

    /// Checks the subscriptions, after the nodes have reported their statuses: a node that restarted in
    /// between has ended its subscription.
    async fn check_subscriptions(
        &self,
        search: &Search<'_>,
        reports: &[NodeReport],
        facts: &mut AbsenceFacts,
    ) {
        let Search { unresolved, batch, .. } = search;
        let attempt = unresolved.attempt_id.attempt;
        let at_post = match self.0.history.get(batch).first_post(attempt) {
            FirstPost::Here { subscriptions, .. } => Some(subscriptions),
            FirstPost::None | FirstPost::Elsewhere => None,
        };
        let mut sources: Vec<_> = reports.iter().map(|report| report.node.source).collect();
        sources.dedup();
        let checks = sources.iter().map(|source| self.0.check_subscription(&batch.0, *source));
        let mut node_answered = false;
        for (source, check) in sources.iter().zip(join_all(checks).await) {
            let Some(check) = check else { continue };
            match source {
                EventSource::Node => {
                    facts.replay_is_whole = check.is_whole;
                    node_answered = at_post.is_some_and(|at_post| at_post.node == Some(check.id));
                }
                EventSource::Peer(_) => {
                    facts.peer_is_watched |=
                        at_post.is_some_and(|at_post| check.id <= at_post.newest);
                }
                EventSource::Replay => {}
            }
        }
        // A websocket is live if its node has just answered on it, or has done so since the batch has had its
        // status.
        let was_live = node_answered || facts.stalled_for > self.0.silence_timeout;
        facts.node_events_are_complete &= was_live;
    }

    /// How long the batch had had its present status when the nodes were queried.
    fn stalled_for(
        &self,
        batch: &BatchKey,
        combined: CombinedStatus,
        queried_at: MonotonicTime,
    ) -> Duration {
        let status = match combined.status {
            LedgerStatus::Valid => StalledStatus::Valid,
            LedgerStatus::NotReported if combined.is_complete => StalledStatus::Unknown,
            LedgerStatus::NotReported => return Duration::ZERO,
            _ => {
                self.0.history.clear_stall(batch);
                return Duration::ZERO;
            }
        };
        queried_at.since(self.0.history.record_stall(batch, status, self.0.clock.monotonic()))
    }
}

impl Scabbard {
    /// Whether the batch was reported as valid for longer than usual.
    pub(crate) fn is_valid_for_long(&self, service_id: &str, batch_id: &str) -> bool {
        let (Ok(service), Ok(id)) = (service_id.parse(), batch_id.parse()) else { return false };
        let valid_since = self.0.history.get(&(service, id)).valid_since();
        let now = self.0.clock.monotonic();
        let unusual = self.0.limits.coordinator_timeout / 30;
        valid_since.is_some_and(|since| now.since(since) >= unusual)
    }

    /// How soon to search again: what proves absence may be seen as soon as a node answers again. `None`: at
    /// the usual pace, because the batch waits its turn, or has been as it is for very long.
    fn search_again_in(&self, facts: &AbsenceFacts) -> Option<Duration> {
        let EndLimits { coordinator_timeout, late_arrival_limit } = self.0.limits;
        let may_be_absent =
            matches!(facts.combined.status, LedgerStatus::Valid | LedgerStatus::NotReported);
        let longest = coordinator_timeout / 15;
        let pause = match facts.combined.is_complete {
            true => (facts.stalled_for / 4).clamp(longest / 4, longest),
            false => longest,
        };
        (may_be_absent && facts.stalled_for < late_arrival_limit * 2).then_some(pause)
    }
}
