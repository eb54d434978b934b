use std::time::Duration;

use grid_batch_core::MonotonicTime;

/// The ledger of a node, as the node has reported it.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    answer: IdentityAnswer,
    /// When the last request that was answered was sent.
    asked_at: Option<MonotonicTime>,
    /// How often a connection to the node failed.
    failures: u64,
    /// How many of the failures came before the last request that was answered.
    answered_failures: u64,
    checks: u64,
    has_confirmed: bool,
    /// When a check first failed after it last confirmed its ledger.
    unconfirmed_since: Option<MonotonicTime>,
}

/// How the last question to a node about its ledger ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum IdentityAnswer {
    /// It has not been asked yet.
    #[default]
    None,
    /// It belongs to the ledger.
    Confirmed,
    /// It did not report its ledger, for this reason.
    Failed(String),
    /// It answered, but not as a node of the ledger does.
    Unusable(String),
    /// It belongs to another ledger, as this message says.
    OtherLedger(String),
}

impl Identity {
    /// How often a node that has confirmed its ledger is asked again.
    pub const CONFIRMED_INTERVAL: Duration = Duration::from_secs(10);
    /// How often any other node is asked.
    const FAILED_INTERVAL: Duration = Duration::from_secs(1);
    /// A batch is sent to a node only if the node was asked within this time. A connection that was open then is
    /// probably the one over which the batch is sent.
    const TRUSTED_FOR: Duration = Duration::from_secs(5);

    /// Records the answer to a request that was sent at this time, after this many failures.
    pub(crate) fn answered(
        &mut self,
        answer: IdentityAnswer,
        asked_at: MonotonicTime,
        failures_before: u64,
    ) {
        self.unconfirmed_since = match answer {
            IdentityAnswer::Confirmed => None,
            _ => self.unconfirmed_since.or(Some(asked_at)),
        };
        self.has_confirmed |= answer == IdentityAnswer::Confirmed;
        self.answer = answer;
        self.asked_at = Some(asked_at);
        self.answered_failures = failures_before;
        self.checks += 1;
    }

    pub(crate) fn connection_failed(&mut self) {
        self.failures += 1;
    }

    /// Since when the node has not reported its ledger, and why.
    pub(crate) fn unconfirmed(&self) -> Option<(MonotonicTime, &str)> {
        let reason = match &self.answer {
            IdentityAnswer::Failed(reason) | IdentityAnswer::Unusable(reason) => reason,
            _ => return None,
        };
        Some((self.unconfirmed_since?, reason))
    }

    /// When the node was last asked, if it did not confirm its ledger.
    pub(crate) fn problem_at(&self) -> Option<MonotonicTime> {
        self.asked_at.filter(|_| !self.is_confirmed())
    }

    /// How the last question ended.
    pub fn answer(&self) -> &IdentityAnswer {
        &self.answer
    }

    /// How often a connection to the node failed.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Whether a connection to the node has failed since the last answered request was sent.
    pub(crate) fn has_failed_since_asked(&self) -> bool {
        self.answered_failures != self.failures
    }

    /// How long ago the last answered request was sent.
    pub fn time_since_asked(&self, now: MonotonicTime) -> Option<Duration> {
        self.asked_at.map(|asked_at| now.since(asked_at))
    }

    /// How often the node was asked.
    pub fn checks(&self) -> u64 {
        self.checks
    }

    /// Whether it has ever confirmed its ledger.
    pub fn has_confirmed(&self) -> bool {
        self.has_confirmed
    }

    /// Whether it confirmed its ledger when it was last asked.
    pub fn is_confirmed(&self) -> bool {
        self.answer == IdentityAnswer::Confirmed
    }

    /// Whether a batch may be sent to the node without asking it again.
    pub fn is_trusted(&self, now: MonotonicTime) -> bool {
        self.is_confirmed()
            && !self.has_failed_since_asked()
            && self.asked_at.is_some_and(|asked_at| now.since(asked_at) < Self::TRUSTED_FOR)
    }

    /// How long to wait before the node is asked again.
    pub fn pause(&self) -> Duration {
        match self.answer {
            IdentityAnswer::Confirmed => Self::CONFIRMED_INTERVAL,
            _ => Self::FAILED_INTERVAL,
        }
    }
}

impl IdentityAnswer {
    /// Why the node is not used; `None` if it is.
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Failed(reason) | Self::Unusable(reason) | Self::OtherLedger(reason) => {
                Some(reason)
            }
            Self::None => Some("no answer yet"),
            Self::Confirmed => None,
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
        let mut node = Identity::default();
        assert!(!node.is_trusted(at(0)) && !node.is_confirmed());
        node.answered(IdentityAnswer::Confirmed, at(10), 0);
        assert!(node.is_trusted(at(14)));
        assert!(!node.is_trusted(at(15)));
        assert!(node.is_confirmed());
    }

    #[test]
    fn node_is_unconfirmed_since_its_first_failure() {
        let failed = |reason: &str| IdentityAnswer::Failed(reason.to_owned());
        let mut node = Identity::default();
        assert_eq!(node.unconfirmed(), None);
        node.answered(IdentityAnswer::Confirmed, at(10), 0);
        assert_eq!(node.unconfirmed(), None);
        node.answered(failed("refused"), at(11), 0);
        node.answered(failed("reset"), at(12), 0);
        assert_eq!(node.unconfirmed(), Some((at(11), "reset")));
        node.answered(IdentityAnswer::Confirmed, at(13), 0);
        assert_eq!(node.unconfirmed(), None);
    }

    #[test]
    fn failed_connection_ends_the_trust() {
        let mut node = Identity::default();
        node.answered(IdentityAnswer::Confirmed, at(10), 0);
        node.connection_failed();
        assert!(!node.is_trusted(at(12)));
        // The answer to a request that was sent before the failure.
        node.answered(IdentityAnswer::Confirmed, at(12), 0);
        assert!(!node.is_trusted(at(12)));
        node.answered(IdentityAnswer::Confirmed, at(12), 1);
        assert!(node.is_trusted(at(12)));
    }

    #[test]
    fn node_that_does_not_answer_is_not_confirmed() {
        let mut node = Identity::default();
        node.answered(IdentityAnswer::Confirmed, at(10), 0);
        assert_eq!(node.pause(), Identity::CONFIRMED_INTERVAL);
        node.answered(IdentityAnswer::Failed("refused".to_owned()), at(11), 0);
        assert!(!node.is_trusted(at(11)) && !node.is_confirmed());
        assert_eq!(node.pause(), Identity::FAILED_INTERVAL);
    }
}
