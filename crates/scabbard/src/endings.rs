//! When a batch that no node has applied can no longer be applied.
//!
//! Two things may still apply it: a request that is on its way, and a node that has the batch. A request whose answer
//! was read has arrived. A request without an answer may be kept by a proxy or a frozen node, even after the connection
//! was closed; it arrives within the limit or not at all. A node that has the batch gives it up when the circuit's
//! coordinator does, but this is assumed only if it is known why the circuit did not commit the batch.

use std::time::Duration;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::{ScopeId, ServiceId, ServiceScopeId};

use crate::{
    absence::AbsenceFacts,
    batch_history::BatchRecord,
    context::ScabbardContext,
    node_reports::StatusAtNode,
    observed_nodes::{EventSource, ObservedNode},
};

/// The limits after which a batch can no longer be applied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndLimits {
    /// How long a request without an answer may still arrive, and how long a batch may stay at a node for unknown
    /// reasons.
    pub(crate) late_arrival_limit: Duration,
    /// After this time, the circuit's coordinator gives up a batch on which not all nodes have voted.
    pub(crate) coordinator_timeout: Duration,
}

impl EndLimits {
    /// The time from a proposal until the coordinator has certainly given it up.
    pub(crate) fn proposal_limit(&self) -> Duration {
        self.coordinator_timeout + self.coordinator_timeout / 10
    }

    /// How long a batch may wait in the coordinator's queue behind a proposal that is given up.
    pub(crate) fn queue_limit(&self) -> Duration {
        self.coordinator_timeout * 2
    }

    /// A node outage of this length makes the coordinator give up a batch.
    pub(crate) fn explaining_outage(&self) -> Duration {
        self.coordinator_timeout - self.coordinator_timeout / 10
    }
}

impl AbsenceFacts {
    /// The time after which no node can apply the batch any more, if none has applied it and nothing changes. `None`:
    /// not known, because a node does not answer, or has the batch in its queue.
    pub(crate) fn ends_in(&self, limits: EndLimits) -> Option<Duration> {
        let steady_for = self.stalled_for.min(self.coordinator_steady_for);
        let left = match self.combined.status {
            _ if !self.combined.is_complete => return None,
            LedgerStatus::Valid if self.is_explained => {
                limits.proposal_limit().saturating_sub(steady_for)
            }
            LedgerStatus::NotReported if self.is_never_accepted || self.was_lost_in_restart() => {
                Duration::ZERO
            }
            LedgerStatus::NotReported if self.is_explained => {
                limits.queue_limit().saturating_sub(self.stalled_for)
            }
            LedgerStatus::Valid | LedgerStatus::NotReported => {
                limits.late_arrival_limit.saturating_sub(self.stalled_for)
            }
            _ => return None,
        };
        Some(left.max(self.may_arrive_for))
    }

    /// Whether the node had the batch only in memory and has restarted since: it no longer knows the batch, and
    /// the websocket from before the POST has ended.
    fn was_lost_in_restart(&self) -> bool {
        self.is_accepted
            && self.is_only_attempt
            && self.node_subscription_broke
            && self.node_coordinates
    }
}

impl ScabbardContext {
    /// How long the node that proposes the circuit's batches has answered without an outage.
    pub(crate) fn coordinator_steady_for(&self, scope: &ServiceScopeId) -> Duration {
        let (service, now) = (scope.service_id(), self.clock.monotonic());
        let last_end =
            self.observed.read(service, self.coordinator(scope), |node| node.outages.last_end());
        last_end.map_or(Duration::MAX, |end| now.since(end))
    }

    /// Whether this node is the reason why the circuit gave up the batch. Either it did not vote, because it did not
    /// answer for as long as the coordinator waits, or it has forgotten or never received the batch, because it was
    /// away.
    pub(crate) fn explains_loss(
        &self,
        service: &ServiceId,
        record: &BatchRecord,
        StatusAtNode { node, status }: &StatusAtNode,
    ) -> bool {
        let Some(sent_at) = record.sent_at() else { return false };
        let is_unknown = *status == Ok(LedgerStatus::NotReported);
        self.observed.read(service, node.source, |ObservedNode { outages, .. }| {
            let was_frozen = record
                .valid_since()
                .is_some_and(|since| outages.longest(since) >= self.limits.explaining_outage());
            was_frozen || (is_unknown && outages.was_away(sent_at))
        })
    }

    /// The node that proposes the batches of the circuit: the one at which the service has the lowest id.
    fn coordinator(&self, scope: &ServiceScopeId) -> EventSource {
        let peers = self.peers_of(scope).into_iter().enumerate();
        let lowest = peers.min_by_key(|(_, peer)| peer.peer.service());
        match lowest.filter(|(_, peer)| peer.peer.service() < scope.service()) {
            Some((index, _)) => EventSource::Peer(index),
            None => EventSource::Node,
        }
    }

    /// Whether the node to which batches are sent proposes the circuit's batches, as far as the circuit's nodes are
    /// known.
    pub(crate) fn node_coordinates(&self, scope: &ServiceScopeId) -> bool {
        !self.peers_of(scope).is_empty() && self.coordinator(scope) == EventSource::Node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{absence::tests::facts, node_reports::CombinedStatus};

    const LIMITS: EndLimits = EndLimits {
        late_arrival_limit: Duration::from_secs(330),
        coordinator_timeout: Duration::from_secs(30),
    };
    const UNKNOWN: LedgerStatus = LedgerStatus::NotReported;
    fn ends_in(facts: AbsenceFacts) -> Option<u64> {
        facts.ends_in(LIMITS).map(|left| left.as_secs())
    }

    /// A batch that has had this status for some time and whose loss is explained.
    fn after(status: LedgerStatus, seconds: u64) -> AbsenceFacts {
        let stalled_for = Duration::from_secs(seconds);
        AbsenceFacts { stalled_for, is_explained: true, ..facts(status) }
    }

    #[test]
    fn batch_ends_with_the_limit_unless_its_loss_is_explained() {
        for (status, explained) in [(LedgerStatus::Valid, 33), (UNKNOWN, 60)] {
            let left = |seconds, is_explained| {
                ends_in(AbsenceFacts { is_explained, ..after(status, seconds) })
            };
            assert_eq!([0, 329, 330].map(|s| left(s, false)), [330, 1, 0].map(Some));
            let ends = [0, explained - 1, explained].map(|s| left(s, true));
            assert_eq!(ends, [explained, 1, 0].map(Some), "{status:?}");
        }
        assert_eq!(ends_in(after(LedgerStatus::Pending, 9_999)), None);
    }

    #[test]
    fn proposal_is_given_up_by_a_coordinator_that_runs() {
        let coordinator_steady_for = Duration::from_secs(3);
        let returned = AbsenceFacts { coordinator_steady_for, ..after(LedgerStatus::Valid, 999) };
        assert_eq!(ends_in(returned), Some(30));
    }

    #[test]
    fn request_without_an_answer_may_arrive_whatever_is_explained() {
        let may_arrive_for = Duration::from_secs(7);
        for status in [LedgerStatus::Valid, UNKNOWN] {
            let facts = AbsenceFacts { may_arrive_for, ..after(status, 9_999) };
            assert_eq!(ends_in(facts), Some(7), "{status:?}");
        }
    }

    #[test]
    fn batch_that_no_node_accepted_needs_no_limit() {
        let facts = AbsenceFacts { is_never_accepted: true, ..facts(UNKNOWN) };
        assert_eq!(ends_in(facts), Some(0));
    }

    #[test]
    fn batch_in_the_queue_of_a_node_ends_with_it() {
        let lost = AbsenceFacts {
            is_accepted: true,
            is_only_attempt: true,
            node_subscription_broke: true,
            node_coordinates: true,
            ..facts(UNKNOWN)
        };
        assert_eq!(ends_in(lost), Some(0));
        let incomplete = CombinedStatus { is_complete: false, ..lost.combined };
        assert_eq!(ends_in(AbsenceFacts { combined: incomplete, ..lost }), None);
        for uncertain in [
            AbsenceFacts { is_accepted: false, ..lost },
            AbsenceFacts { is_only_attempt: false, ..lost },
            AbsenceFacts { node_subscription_broke: false, ..lost },
            AbsenceFacts { node_coordinates: false, ..lost },
            AbsenceFacts { combined: facts(LedgerStatus::Valid).combined, ..lost },
        ] {
            assert_eq!(ends_in(uncertain), Some(330), "{uncertain:?}");
        }
    }
}
