use std::time::Duration;

use futures_util::future::join_all;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::{Evidence, EvidenceReport, UnresolvedBatch};
use grid_batch_core::{BatchResult, ItemId, MonotonicTime, ServiceScopeId};
use log::info;

use crate::{
    Scabbard,
    absence::AbsenceFacts,
    batch_history::{BatchKey, BatchRecord, FirstPost, Loss, StalledStatus},
    context::{ScabbardContext, parse_scope},
    endings::EndLimits,
    evidence_detail::detail,
    node_reports::{CombinedStatus, StatusAtNode, no_status},
    observed_nodes::{EventSource, SubscriptionsAtPost},
    state_roots::StateRoots,
};

/// The search for evidence about one batch. A report that a node has it is always evidence. A report that a node does
/// not have it is evidence only together with a proof that it was not applied.
struct BatchSearch<'a> {
    context: &'a ScabbardContext,
    unresolved: &'a UnresolvedBatch,
    attempt: u32,
    scope: ServiceScopeId,
    batch: BatchKey,
}

impl BatchSearch<'_> {
    async fn run(&self) -> BatchResult<EvidenceReport> {
        let Self { context, batch, .. } = self;
        if self.is_committed() {
            return Ok(Evidence::Committed.into());
        }
        let batch_id = batch.1.to_string();
        let nodes = context.all_nodes(&self.scope, &batch_id)?;
        // The moment is taken before the proof, so that the proof covers everything that its subscriptions miss.
        let (moment, queried_at) = (context.moment(&batch.0), context.clock.monotonic());
        let answers = context.ask_all(nodes, &batch.0, &[&batch_id], Duration::MAX).await;
        let reports: Vec<_> = answers.iter().map(|answer| answer.about(&batch_id)).collect();
        let facts = self.collect_facts(&reports, queried_at).await;
        // The transactions are checked last, so that they include all events that the subscriptions had received when
        // they were checked.
        if self.is_committed() {
            return Ok(Evidence::Committed.into());
        }
        if let Some(error) = no_status(reports.iter()) {
            return Err(error);
        }
        let ends_in = facts.ends_in(context.limits);
        let not_applied = facts.not_applied().filter(|_| !self.may_be_applied());
        if let Some(not_applied) = not_applied
            && ends_in == Some(Duration::ZERO)
        {
            if !facts.is_never_accepted {
                let loss = Loss {
                    is_of_only_attempt: facts.is_accepted && facts.is_only_attempt,
                    is_explained: facts.is_explained,
                };
                context.history.certify_absence(batch, self.attempt, loss, moment);
            }
            info!(
                batch_id = batch_id.as_str(), service:% = self.scope,
                status:? = facts.combined.status, proof:? = not_applied;
                "the batch is absent from the ledger"
            );
            return Ok(facts.absence().into());
        }
        let provable_in = ends_in.filter(|_| not_applied.is_some());
        let text = detail(context, &batch.0, &reports, &facts, provable_in);
        let report = EvidenceReport::with_detail(facts.presence(), text);
        let again_in = context.limits.search_again_in(&facts);
        Ok(EvidenceReport { again_in, provable_in, ..report })
    }

    /// Whether a node has reported the batch as committed, or events prove it.
    fn is_committed(&self) -> bool {
        self.context.history.get(&self.batch).is_committed || self.is_proved_by_events()
    }

    /// Whether events prove that the batch was committed: they name all of its transactions, at least one of these is
    /// in no other batch, and those were not applied before the first POST of this batch.
    fn is_proved_by_events(&self) -> bool {
        let Self { context, unresolved, batch, .. } = self;
        let first_post_at = match self.first_post(&context.history.get(batch)) {
            FirstPost::None => return false,
            FirstPost::Here(moment) => Some(moment.observations),
            FirstPost::NotSeen | FirstPost::Elsewhere => None,
        };
        let UnresolvedBatch { transaction_ids: all, shared_transaction_ids: shared, .. } =
            unresolved;
        let is_own = |id: &&ItemId| !shared.contains(*id);
        let is_applied = |id: &ItemId| {
            let after = if is_own(&id) { first_post_at } else { None };
            context.applied.has_event(&batch.0, id, after)
        };
        all.iter().any(|id| is_own(&id)) && all.iter().all(is_applied)
    }

    /// The first POST that the ledger may have accepted. Attempts that the queue gave back unsent are not seen here, but
    /// the store counts them.
    fn first_post(&self, record: &BatchRecord) -> FirstPost {
        let UnresolvedBatch { not_accepted, earlier_may_arrive, .. } = self.unresolved;
        if *earlier_may_arrive || not_accepted + 1 < self.attempt {
            record.first_post(self.attempt)
        } else {
            record.only_post(self.attempt)
        }
    }

    /// Whether a transaction of the batch is known to be applied, or could have been applied unnoticed.
    fn may_be_applied(&self) -> bool {
        let transactions = &self.unresolved.transaction_ids;
        transactions.is_empty() || self.context.applied.count(&self.batch.0, transactions) > 0
    }

    /// The facts besides the reports. Nodes are asked for more only if that can prove something.
    async fn collect_facts(
        &self,
        reports: &[StatusAtNode],
        queried_at: MonotonicTime,
    ) -> AbsenceFacts {
        let combined = CombinedStatus::new(reports.iter());
        let stalled_for = self.stalled_for(combined, queried_at);
        let record = self.context.history.get(&self.batch);
        let first_post = match self.first_post(&record) {
            FirstPost::Here(moment) => Some(moment.subscriptions),
            FirstPost::None | FirstPost::NotSeen | FirstPost::Elsewhere => None,
        };
        let mut facts = self.known_facts(reports, &record, first_post, stalled_for);
        let is_settled = matches!(combined.status, LedgerStatus::Committed | LedgerStatus::Invalid);
        if is_settled || !combined.is_complete {
            return facts;
        }
        if let Some(first_post) = first_post
            && facts.not_applied().is_none()
            && combined.status != LedgerStatus::Pending
        {
            self.check_subscriptions(reports, first_post, &mut facts).await;
        }
        let nodes: Vec<_> = reports.iter().map(|report| report.node.clone()).collect();
        facts.state_roots = self.context.compare_state_roots(&self.scope, &nodes).await;
        facts
    }

    /// The facts that are known without asking a node.
    fn known_facts(
        &self,
        reports: &[StatusAtNode],
        record: &BatchRecord,
        first_post: Option<SubscriptionsAtPost>,
        stalled_for: Duration,
    ) -> AbsenceFacts {
        let Self { context, attempt, scope, batch, .. } = self;
        let at_node = CombinedStatus::new(reports.iter().filter(|report| !report.is_peer()));
        let mut peers = reports.iter().filter(|report| report.is_peer());
        let first = first_post.and_then(|at_post| at_post.node);
        let has_broken = |first| {
            context.observed.read(&batch.0, EventSource::Node, |node| node.has_broken(first))
        };
        let explains = |report| context.explains_loss(&batch.0, record, report);
        AbsenceFacts {
            combined: CombinedStatus::new(reports.iter()),
            at_node: at_node.status,
            stalled_for,
            is_own: first_post.is_some(),
            is_never_accepted: self.first_post(record) == FirstPost::None
                && record.attempts_under_way == 0
                && !self.unresolved.earlier_may_arrive,
            is_accepted: record.has_arrived(*attempt),
            is_only_attempt: record.is_only_attempt(*attempt),
            node_events_are_complete: first.is_some()
                && context.observed.caught_up(&batch.0) == first,
            node_is_live: stalled_for > context.silence_timeout,
            node_subscription_broke: first.is_some_and(has_broken),
            replay_is_whole: false,
            peer_is_watched: false,
            peer_is_valid: peers.any(|report| report.status == Ok(LedgerStatus::Valid)),
            node_coordinates: context.node_coordinates(scope),
            state_roots: StateRoots::NotKnown,
            may_arrive_for: record
                .may_arrive_for(context.limits.late_arrival_limit, context.clock.monotonic()),
            is_explained: record.may_be_left_over || reports.iter().any(explains),
            coordinator_steady_for: context.coordinator_steady_for(scope),
        }
    }

    /// Checks the subscriptions after the nodes have reported their statuses, because a node that restarted in between
    /// has ended its subscription.
    async fn check_subscriptions(
        &self,
        reports: &[StatusAtNode],
        first_post: SubscriptionsAtPost,
        facts: &mut AbsenceFacts,
    ) {
        let mut sources: Vec<_> = reports.iter().map(|report| report.node.source).collect();
        sources.dedup();
        let check = |source: &_| self.context.check_subscription(&self.batch.0, *source);
        let checks = join_all(sources.iter().map(check)).await;
        for (source, check) in sources.iter().zip(checks) {
            let Some(check) = check else { continue };
            match source {
                EventSource::Node => {
                    facts.replay_is_whole = check.is_whole;
                    facts.node_is_live |= first_post.node == Some(check.id);
                }
                EventSource::Peer(_) => facts.peer_is_watched |= check.id <= first_post.newest,
                EventSource::Replay => {}
            }
        }
    }

    /// How long the batch had had its present status when the nodes were queried.
    fn stalled_for(&self, combined: CombinedStatus, queried_at: MonotonicTime) -> Duration {
        let Self { context, batch, .. } = self;
        let status = match combined.status {
            LedgerStatus::Valid => StalledStatus::Valid,
            LedgerStatus::NotReported if combined.is_complete => StalledStatus::Unknown,
            LedgerStatus::NotReported => return Duration::ZERO,
            _ => {
                context.history.clear_stall(batch);
                return Duration::ZERO;
            }
        };
        let now = context.clock.monotonic();
        queried_at.since(context.history.record_stall(batch, status, now))
    }
}

impl Scabbard {
    /// Searches for evidence about a batch.
    pub(crate) async fn find(&self, unresolved: &UnresolvedBatch) -> BatchResult<EvidenceReport> {
        let attempt = unresolved.attempt_id.attempt;
        let scope = parse_scope(unresolved.service_id.as_str())?;
        let batch = (unresolved.service_id.clone(), unresolved.batch_id);
        BatchSearch { context: &self.0, unresolved, attempt, scope, batch }.run().await
    }

    /// Whether the batch was reported as valid for longer than usual.
    pub(crate) fn is_valid_for_long(&self, service_id: &str, batch_id: &str) -> bool {
        let (Ok(service), Ok(id)) = (service_id.parse(), batch_id.parse()) else { return false };
        let valid_since = self.0.history.get(&(service, id)).valid_since();
        let now = self.0.clock.monotonic();
        let unusual = self.0.limits.coordinator_timeout / 30;
        valid_since.is_some_and(|since| now.since(since) >= unusual)
    }
}

impl EndLimits {
    /// How soon to search again, because absence may be provable as soon as a node answers again. `None`: at the usual
    /// pace, because the batch waits for its turn, or has not changed for very long.
    fn search_again_in(self, facts: &AbsenceFacts) -> Option<Duration> {
        let Self { coordinator_timeout, late_arrival_limit } = self;
        let may_be_absent =
            matches!(facts.combined.status, LedgerStatus::Valid | LedgerStatus::NotReported);
        let longest = coordinator_timeout / 15;
        let pause = if facts.combined.is_complete {
            (facts.stalled_for / 4).clamp(longest / 4, longest)
        } else {
            longest
        };
        (may_be_absent && facts.stalled_for < late_arrival_limit * 2).then_some(pause)
    }
}
