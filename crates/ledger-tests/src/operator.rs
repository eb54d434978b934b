use grid_batch_core::{AbsenceRule, LedgerFacts};

/// Whether an operator decides about batches that are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    /// What is held although the server must find its end itself is a failure.
    Absent,
    /// Batches may be held.
    Decides,
    /// A batch must be held: what ends it without a decision is a guess.
    MustDecide,
}

impl Operator {
    /// About a batch that did not reach the ledger, while the instance that sent it is running.
    pub(crate) fn for_absence(facts: &LedgerFacts) -> Self {
        match facts.absence_rule() {
            AbsenceRule::Never => Self::MustDecide,
            AbsenceRule::Reported | AbsenceRule::ObservedBySender => Self::Absent,
        }
    }

    /// The same after that instance was killed.
    pub(crate) fn for_absence_after_kill(facts: &LedgerFacts) -> Self {
        match facts.absence_rule() {
            AbsenceRule::ObservedBySender => Self::MustDecide,
            _ => Self::for_absence(facts),
        }
    }
}
