use std::time::Duration;

use grid_batch_core::MonotonicTime;

use super::LedgerMismatchError;

/// What is known about one node.
#[derive(Debug, Default)]
pub(super) struct NodeState {
    answer: NodeAnswer,
    /// When the last request that was answered had been sent.
    asked_at: Option<MonotonicTime>,
    /// How often a connection to the node failed.
    failures: u64,
    /// How many of the failures were before the last request that was answered.
    answered_failures: u64,
    /// How often the node was asked.
    checks: u64,
    /// Whether it has ever confirmed its ledger.
    has_confirmed: bool,
    /// When the first check failed since it last confirmed its ledger.
    unconfirmed_since: Option<MonotonicTime>,
}

/// How the last check of a node ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum NodeAnswer {
    /// It was not asked yet.
    #[default]
    None,
    /// It belongs to the ledger.
    Confirmed,
    /// It did not tell, for this reason.
    Failed(String),
    /// It answered, and not as a node of the ledger does.
    Unusable(String),
    /// It belongs to another ledger.
    OtherLedger(Box<LedgerMismatchError>),
}

impl NodeAnswer {
    /// Why the node is not used. `None`: it is, or it was not asked yet.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Failed(reason) | Self::Unusable(reason) => Some(reason.clone()),
            Self::OtherLedger(mismatch) => Some(mismatch.to_string()),
            Self::None | Self::Confirmed => None,
        }
    }
}

impl NodeState {
    /// How often a node is asked that has confirmed its ledger.
    pub(super) const CONFIRMED_INTERVAL: Duration = Duration::from_secs(10);
    /// How often a node is asked that has not.
    pub(super) const FAILED_INTERVAL: Duration = Duration::from_secs(1);
    /// A batch is sent to a node only if the node was asked within this time. A connection that was
    /// open then is probably still the one that the batch is sent over.
    const TRUSTED_FOR: Duration = Duration::from_secs(5);

    /// Stores the answer to a request that was sent at this time, after so many failures.
    pub(super) fn answered(
        &mut self,
        answer: NodeAnswer,
        asked_at: MonotonicTime,
        failures_before: u64,
    ) {
        self.unconfirmed_since = match answer {
            NodeAnswer::Confirmed => None,
            _ => self.unconfirmed_since.or(Some(asked_at)),
        };
        self.has_confirmed |= answer == NodeAnswer::Confirmed;
        self.answer = answer;
        self.asked_at = Some(asked_at);
        self.answered_failures = failures_before;
        self.checks += 1;
    }

    /// How often a connection to the node failed until now.
    pub(super) fn failures(&self) -> u64 {
        self.failures
    }

    /// A connection to the node failed: another node may answer at its address from now on.
    pub(super) fn connection_failed(&mut self) {
        self.failures += 1;
    }

    /// Since when and why the node does not tell its ledger.
    pub(super) fn unconfirmed(&self) -> Option<(MonotonicTime, &str)> {
        let reason = match &self.answer {
            NodeAnswer::Failed(reason) | NodeAnswer::Unusable(reason) => reason,
            NodeAnswer::None | NodeAnswer::Confirmed | NodeAnswer::OtherLedger(_) => return None,
        };
        Some((self.unconfirmed_since?, reason))
    }

    pub(super) fn answer(&self) -> &NodeAnswer {
        &self.answer
    }

    /// How long ago the request was sent that was answered last.
    pub(super) fn asked_for(&self, now: MonotonicTime) -> Option<Duration> {
        self.asked_at.map(|asked_at| now.since(asked_at))
    }

    pub(super) fn checks(&self) -> u64 {
        self.checks
    }

    /// Whether it has ever confirmed its ledger.
    pub(super) fn has_confirmed(&self) -> bool {
        self.has_confirmed
    }

    /// The ledger that the node belongs to, if that is another one.
    pub(super) fn other_ledger(&self) -> Option<&LedgerMismatchError> {
        match &self.answer {
            NodeAnswer::OtherLedger(mismatch) => Some(mismatch),
            _ => None,
        }
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.answer == NodeAnswer::Confirmed
    }

    /// Whether a batch may be sent to the node without asking it again.
    pub(super) fn is_trusted(&self, now: MonotonicTime) -> bool {
        self.is_confirmed()
            && self.answered_failures == self.failures
            && self.asked_at.is_some_and(|asked_at| now.since(asked_at) < Self::TRUSTED_FOR)
    }

    /// How long to wait before the node is asked again.
    pub(super) fn pause(&self) -> Duration {
        match self.answer {
            NodeAnswer::Confirmed => Self::CONFIRMED_INTERVAL,
            _ => Self::FAILED_INTERVAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    #[test]
    fn node_is_trusted_for_a_while_after_it_confirmed() {
        let mut node = NodeState::default();
        assert!(!node.is_trusted(at(0)) && !node.is_confirmed());
        node.answered(NodeAnswer::Confirmed, at(10), 0);
        assert!(node.is_trusted(at(14)));
        assert!(!node.is_trusted(at(15)));
        assert!(node.is_confirmed());
    }

    #[test]
    fn node_is_unconfirmed_since_its_first_failure() {
        let failed = |reason: &str| NodeAnswer::Failed(reason.to_owned());
        let mut node = NodeState::default();
        assert_eq!(node.unconfirmed(), None);
        node.answered(NodeAnswer::Confirmed, at(10), 0);
        assert_eq!(node.unconfirmed(), None);
        node.answered(failed("refused"), at(11), 0);
        node.answered(failed("reset"), at(12), 0);
        assert_eq!(node.unconfirmed(), Some((at(11), "reset")));
        node.answered(NodeAnswer::Confirmed, at(13), 0);
        assert_eq!(node.unconfirmed(), None);
    }

    #[test]
    fn failed_connection_ends_the_trust() {
        let mut node = NodeState::default();
        node.answered(NodeAnswer::Confirmed, at(10), 0);
        node.connection_failed();
        assert!(!node.is_trusted(at(12)));
        // The answer to a request that was sent before.
        node.answered(NodeAnswer::Confirmed, at(12), 0);
        assert!(!node.is_trusted(at(12)));
        node.answered(NodeAnswer::Confirmed, at(12), 1);
        assert!(node.is_trusted(at(12)));
    }

    #[test]
    fn node_that_does_not_answer_is_not_confirmed() {
        let mut node = NodeState::default();
        node.answered(NodeAnswer::Confirmed, at(10), 0);
        assert_eq!(node.pause(), NodeState::CONFIRMED_INTERVAL);
        node.answered(NodeAnswer::Failed("refused".to_owned()), at(11), 0);
        assert!(!node.is_trusted(at(11)) && !node.is_confirmed());
        assert_eq!(node.pause(), NodeState::FAILED_INTERVAL);
    }
}
