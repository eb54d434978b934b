//! Proofs that a batch was not applied and will not be.

use std::time::Duration;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;

use crate::{node_reports::CombinedStatus, state_roots::StateRoots};

/// What is known about a batch that may be absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AbsenceFacts {
    /// The status at all nodes.
    pub(crate) combined: CombinedStatus,
    /// The status at the nodes to which the batch was sent.
    pub(crate) at_node: LedgerStatus,
    /// How long all nodes together have had that status.
    pub(crate) stalled_for: Duration,
    /// Whether this adapter has sent the present attempt and all earlier ones. Another process may be paused after it
    /// has taken an attempt.
    pub(crate) is_own: bool,
    /// Whether this adapter made the present attempt and all earlier ones, and no node can have accepted one: each ended
    /// before its POST, such as at its time limit while nodes were still asked, or was answered with a refusal.
    pub(crate) is_never_accepted: bool,
    /// Whether the present attempt has arrived: there is no other attempt, and the node answered that it accepted this
    /// one, or reported the batch.
    pub(crate) is_accepted: bool,
    /// Whether only the present attempt can have brought the batch to a node.
    pub(crate) is_only_attempt: bool,
    /// Whether the node's subscription from the time of the first POST is live and caught up.
    pub(crate) node_events_are_complete: bool,
    /// Whether the node has answered on that subscription since the batch entered its status.
    pub(crate) node_is_live: bool,
    /// Whether the node's subscription from the time of the first POST has ended.
    pub(crate) node_subscription_broke: bool,
    /// The node has replayed all transactions of the service.
    pub(crate) replay_is_whole: bool,
    /// A peer has answered on a subscription that was live before the first POST.
    pub(crate) peer_is_watched: bool,
    /// A peer reports the batch as Valid.
    pub(crate) peer_is_valid: bool,
    /// The node proposes the circuit's batches, so they wait in no other node's queue.
    pub(crate) node_coordinates: bool,
    pub(crate) state_roots: StateRoots,
    /// How long a request of the batch that was not answered may still arrive.
    pub(crate) may_arrive_for: Duration,
    /// It is known why the circuit did not commit the batch: a node was away.
    pub(crate) is_explained: bool,
    /// How long the node that proposes the circuit's batches has answered without an outage.
    pub(crate) coordinator_steady_for: Duration,
}

/// Why it is certain that no node has applied the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotApplied {
    /// No node has accepted an attempt, and none reports the batch.
    NeverAccepted,
    /// The node's events were received without a gap since before the first POST.
    NothingMissed,
    /// The node would report Committed: it reports Valid, so it has not restarted since the only POST.
    StillValid,
    /// The node has replayed all transactions of the service.
    WholeReplay,
    /// A peer has not applied it, and the node has the same state as the peer.
    SameStateAsPeer,
}

impl AbsenceFacts {
    /// Why no node has applied the batch, if none of its transactions is known to be applied.
    pub(crate) fn not_applied(&self) -> Option<NotApplied> {
        let peer_has_not = self.peer_is_watched || (self.peer_is_valid && self.is_only_attempt);
        let is_valid = self.at_node == LedgerStatus::Valid;
        match self.state_roots {
            // A node may have applied it without a receipt, or without the others.
            StateRoots::Differ | StateRoots::DifferLastingly => None,
            _ if self.is_never_accepted && self.combined.status == LedgerStatus::NotReported => {
                Some(NotApplied::NeverAccepted)
            }
            _ if !self.is_own => None,
            _ if self.node_events_are_complete && self.node_is_live => {
                Some(NotApplied::NothingMissed)
            }
            _ if is_valid && self.is_only_attempt => Some(NotApplied::StillValid),
            _ if self.replay_is_whole => Some(NotApplied::WholeReplay),
            StateRoots::Equal if peer_has_not => Some(NotApplied::SameStateAsPeer),
            _ => None,
        }
    }

    /// The evidence of absence.
    pub(crate) fn absence(&self) -> Evidence {
        if self.is_accepted { Evidence::Lost } else { Evidence::Absent }
    }

    /// The evidence without a proof of absence.
    pub(crate) fn presence(&self) -> Evidence {
        use LedgerStatus::{Committed, Invalid, NotReported, Pending, Valid};
        match self.combined.status {
            Committed => Evidence::Committed,
            Pending | Valid => Evidence::Present,
            // The status reader handles invalid batches; here they only must not be absent.
            Invalid | NotReported => Evidence::Inconclusive,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// All nodes report this status, and nothing else is known.
    pub(crate) fn facts(status: LedgerStatus) -> AbsenceFacts {
        AbsenceFacts {
            combined: CombinedStatus { status, is_complete: true },
            at_node: status,
            stalled_for: Duration::ZERO,
            is_own: true,
            is_never_accepted: false,
            is_accepted: false,
            is_only_attempt: false,
            node_events_are_complete: false,
            node_is_live: false,
            node_subscription_broke: false,
            replay_is_whole: false,
            peer_is_watched: false,
            peer_is_valid: false,
            node_coordinates: false,
            state_roots: StateRoots::NotKnown,
            may_arrive_for: Duration::ZERO,
            is_explained: false,
            coordinator_steady_for: Duration::MAX,
        }
    }

    const UNKNOWN: LedgerStatus = LedgerStatus::NotReported;

    #[test]
    fn nothing_is_proved_without_a_reason() {
        for status in [UNKNOWN, LedgerStatus::Pending, LedgerStatus::Valid] {
            assert_eq!(facts(status).not_applied(), None, "{status:?}");
            let other_attempt = AbsenceFacts { is_accepted: true, ..facts(status) };
            assert_eq!(other_attempt.not_applied(), None, "{status:?}");
        }
    }

    #[test]
    fn each_reason_proves_that_the_batch_was_not_applied() {
        let none = facts(UNKNOWN);
        let equal = AbsenceFacts { state_roots: StateRoots::Equal, ..none };
        let only = AbsenceFacts { is_only_attempt: true, ..equal };
        for (facts, expected) in [
            (
                AbsenceFacts { node_events_are_complete: true, node_is_live: true, ..none },
                Some(NotApplied::NothingMissed),
            ),
            (AbsenceFacts { node_events_are_complete: true, ..none }, None),
            (AbsenceFacts { replay_is_whole: true, ..none }, Some(NotApplied::WholeReplay)),
            (AbsenceFacts { peer_is_watched: true, ..none }, None),
            (AbsenceFacts { peer_is_watched: true, ..equal }, Some(NotApplied::SameStateAsPeer)),
            (AbsenceFacts { peer_is_valid: true, ..equal }, None),
            (AbsenceFacts { peer_is_valid: true, ..only }, Some(NotApplied::SameStateAsPeer)),
            (only, None),
        ] {
            assert_eq!(facts.not_applied(), expected, "{facts:?}");
            let of_another_process = AbsenceFacts { is_own: false, ..facts };
            assert_eq!(of_another_process.not_applied(), None, "{facts:?}");
            let differ = AbsenceFacts { state_roots: StateRoots::Differ, ..facts };
            assert_eq!(differ.not_applied(), None, "{differ:?}");
        }
    }

    #[test]
    fn batch_that_no_node_accepted_is_not_applied() {
        let never_accepted =
            |status| AbsenceFacts { is_own: false, is_never_accepted: true, ..facts(status) };
        assert_eq!(never_accepted(UNKNOWN).not_applied(), Some(NotApplied::NeverAccepted));
        assert_eq!(never_accepted(LedgerStatus::Valid).not_applied(), None);
    }

    #[test]
    fn valid_at_the_node_proves_only_an_attempt_without_others() {
        let only = AbsenceFacts { is_only_attempt: true, ..facts(LedgerStatus::Valid) };
        assert_eq!(only.not_applied(), Some(NotApplied::StillValid));
        assert_eq!(facts(LedgerStatus::Valid).not_applied(), None);
        let at_peer_only = AbsenceFacts { at_node: UNKNOWN, ..only };
        assert_eq!(at_peer_only.not_applied(), None);
    }
}
