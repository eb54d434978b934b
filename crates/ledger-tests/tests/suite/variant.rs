use std::{fmt::Debug, str::FromStr, time::Duration};

use grid_batch_core::ledger::{LedgerFacts, SecondArrival};
use grid_batch_ledger_tests::LATE_ARRIVAL_LIMIT;

/// A variant of the small ledger: how it behaves, and what its adapter declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// It does all that it declares.
    Strong,
    /// It does the same, and declares nothing.
    Weak,
    /// It declares that a second arrival changes nothing, and applies the batch again.
    AppliesAgain,
    /// It declares that statuses survive a restart, and forgets them.
    ForgetsCommits,
    /// It declares that absence can be proved, and does not report what it has not applied.
    HidesPending,
    /// It declares that late arrivals have no effect, and applies them.
    AppliesLate,
    /// It declares that it keeps the order of arrival, and applies the latest batch first.
    Reorders,
    /// Its adapter reports a batch as absent, although another instance may have sent it.
    GuessesAbsence,
    /// Its adapter reports the same identity for every ledger.
    HidesIdentity,
    /// Its program does not say why it ends.
    HidesReason,
    /// It forgets at a restart which batches it has applied. If one of them arrives again, it is applied again with the
    /// next batch.
    AppliesAgainLater,
    /// Its adapter treats a lost answer as a report that the node is busy.
    GuessesAnswers,
    /// It declares that batches expire, and applies them after their deadline.
    IgnoresDeadlines,
}

impl Variant {
    const ALL: [Self; 13] = [
        Self::Strong,
        Self::Weak,
        Self::AppliesAgain,
        Self::ForgetsCommits,
        Self::HidesPending,
        Self::AppliesLate,
        Self::Reorders,
        Self::GuessesAbsence,
        Self::HidesIdentity,
        Self::HidesReason,
        Self::AppliesAgainLater,
        Self::GuessesAnswers,
        Self::IgnoresDeadlines,
    ];

    pub fn facts(self) -> LedgerFacts {
        let weakest = LedgerFacts::weakest(LATE_ARRIVAL_LIMIT);
        let strong = LedgerFacts {
            second_arrival: SecondArrival::AppliedOnce,
            proves_absence: true,
            statuses_survive_restart: true,
            reports_earlier_invalid: false,
            keeps_order: true,
            batches_expire: true,
            tells_identity: true,
            ..weakest
        };
        let again = LedgerFacts { second_arrival: SecondArrival::AppliedAgain, ..strong };
        match self {
            Self::Weak => weakest,
            Self::AppliesLate => LedgerFacts { late_arrival_limit: Duration::ZERO, ..again },
            // Otherwise a batch that is sent twice would do no harm.
            Self::GuessesAbsence => LedgerFacts {
                statuses_survive_restart: false,
                has_events: true,
                batches_expire: false,
                ..again
            },
            Self::HidesPending | Self::GuessesAnswers => again,
            _ => strong,
        }
    }

    /// Whether the ledger applies a batch again.
    pub fn applies_again(self) -> bool {
        self == Self::AppliesAgain
            || self.forgets()
            || self.facts().second_arrival == SecondArrival::AppliedAgain
    }

    /// Whether a restart forgets what was applied.
    pub fn forgets(self) -> bool {
        matches!(self, Self::ForgetsCommits | Self::AppliesAgainLater | Self::Weak)
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|variant| format!("{variant:?}") == text);
        found.ok_or_else(|| format!("there is no variant {text}"))
    }
}
