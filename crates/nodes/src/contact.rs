use std::time::Duration;

use grid_batch_core::MonotonicTime;

/// What requests to a node have shown: whether it answers.
#[derive(Debug, Default)]
pub(crate) struct Contact {
    /// When a request was answered last.
    answered_at: Option<MonotonicTime>,
    /// When an answer or an event was last expected from the node.
    expected_at: Option<MonotonicTime>,
    failure: Option<Failure>,
    /// When it was last noticed that the node does not answer.
    unanswered_at: Option<MonotonicTime>,
}

/// The first failure since the last answer, with the latest reason.
#[derive(Debug)]
struct Failure {
    since: MonotonicTime,
    reason: String,
}

impl Contact {
    /// A failure is shown after this time, unless the node answers within it. A connection may break although nothing
    /// is wrong with the node.
    pub(crate) const SHOWN_AFTER: Duration = Duration::from_secs(1);
    /// A node from which something is expected is asked if it has not answered for this long.
    const ASKED_AFTER: Duration = Duration::from_secs(2);
    /// Any other node is asked if it has not answered for this long.
    const IDLE_ASKED_AFTER: Duration = Duration::from_secs(10);
    /// How long something is expected after the last request that concerned a batch. It is longer than the usual time
    /// between two polls.
    const EXPECTED_FOR: Duration = Duration::from_secs(75);

    pub(crate) fn answered(&mut self, now: MonotonicTime) {
        self.answered_at = Some(now);
        self.failure = None;
    }

    /// Records that the node has not answered since this time.
    pub(crate) fn unanswered(&mut self, since: MonotonicTime, now: MonotonicTime, reason: &str) {
        if self.answered_at.is_some_and(|answered_at| answered_at > since) {
            return;
        }
        let first = self.failure.as_ref().map_or(since, |failure| failure.since.min(since));
        self.failure = Some(Failure { since: first, reason: reason.to_owned() });
        self.unanswered_at = Some(now);
    }

    pub(crate) fn unanswered_at(&self) -> Option<MonotonicTime> {
        self.unanswered_at
    }

    pub(crate) fn expect(&mut self, now: MonotonicTime) {
        self.expected_at = Some(now);
    }

    /// Since when the node has not answered, and why.
    pub(crate) fn failure(&self) -> Option<(MonotonicTime, &str)> {
        self.failure.as_ref().map(|failure| (failure.since, failure.reason.as_str()))
    }

    pub(crate) fn should_ask(&self, asked_at: Option<MonotonicTime>, now: MonotonicTime) -> bool {
        let is_over =
            |time: Option<MonotonicTime>, limit| time.is_none_or(|at| now.since(at) >= limit);
        if self.failure.is_some() {
            return is_over(asked_at, Self::SHOWN_AFTER / 4);
        }
        let is_expected = !is_over(self.expected_at, Self::EXPECTED_FOR);
        let limit = if is_expected { Self::ASKED_AFTER } else { Self::IDLE_ASKED_AFTER };
        is_over(self.answered_at, limit) && is_over(asked_at, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn question_from_before_the_last_answer_shows_nothing() {
        let mut contact = Contact::default();
        contact.answered(at(1.0));
        contact.unanswered(at(0.0), at(2.0), "late");
        assert_eq!(contact.failure(), None);
        contact.unanswered(at(2.0), at(4.0), "late");
        assert_eq!(contact.failure(), Some((at(2.0), "late")));
    }

    #[test]
    fn node_with_expected_answers_is_asked_more_often() {
        let mut contact = Contact::default();
        assert!(contact.should_ask(None, at(0.0)));
        contact.answered(at(0.0));
        assert!(!contact.should_ask(None, at(0.0)) && !contact.should_ask(None, at(2.0)));
        contact.expect(at(2.0));
        assert!(contact.should_ask(None, at(2.0)));
        assert!(!contact.should_ask(Some(at(2.0)), at(2.0)));
        contact.answered(at(77.0));
        assert!(!contact.should_ask(None, at(86.9)));
        assert!(contact.should_ask(None, at(87.0)));
    }

    #[test]
    fn node_that_failed_is_asked_at_once() {
        let mut contact = Contact::default();
        contact.answered(at(0.0));
        contact.unanswered(at(0.0), at(0.0), "reset");
        assert!(contact.should_ask(None, at(0.0)));
        assert!(!contact.should_ask(Some(at(0.0)), at(0.0)));
        assert!(contact.should_ask(Some(at(0.0)), at(0.25)));
    }
}
