use grid_batch_core::ledger::{AbsenceRule, LedgerFacts, SecondArrival};

/// Whether an operator decides about batches that are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    /// No batch may be held, because the server must find out itself how each has ended.
    Absent,
    /// Batches may be held.
    Decides,
    /// A batch must be held: without a decision, its end would be a guess, and it could be applied twice.
    MustDecide,
}

impl Operator {
    /// For a batch that did not reach the ledger, while the instance that sent it is running.
    pub(crate) fn for_absence(facts: &LedgerFacts) -> Self {
        match facts.absence_rule() {
            AbsenceRule::Reported | AbsenceRule::ObservedBySender => Self::Absent,
            AbsenceRule::Never => Self::for_a_guess(facts),
        }
    }

    /// For a batch that did not reach the ledger, after the instance that sent it was killed.
    pub(crate) fn for_absence_after_kill(facts: &LedgerFacts) -> Self {
        match facts.absence_rule() {
            AbsenceRule::Reported => Self::Absent,
            // Another instance can ask a ledger that remembers what it has applied.
            AbsenceRule::ObservedBySender if facts.statuses_survive_restart => Self::Decides,
            AbsenceRule::ObservedBySender | AbsenceRule::Never => Self::for_a_guess(facts),
        }
    }

    fn for_a_guess(facts: &LedgerFacts) -> Self {
        match facts.second_arrival {
            SecondArrival::AppliedAgain => Self::MustDecide,
            SecondArrival::AppliedOnce | SecondArrival::Refused => Self::Decides,
        }
    }
}
