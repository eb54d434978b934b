use std::{fmt::Debug, str::FromStr};

use grid_batch_core::{LedgerFacts, SecondArrival};
use grid_batch_ledger_tests::LATE_ARRIVAL_LIMIT;

/// What the small ledger does, and what its adapter declares.
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
    /// It declares that it keeps the order of arrival, and applies the latest batch first.
    Reorders,
    /// Its adapter reads a lost answer as one that says that the node is busy.
    GuessesAnswers,
    /// It declares that batches expire, and applies them after their deadline.
    IgnoresDeadlines,
}

impl Variant {
    const ALL: [Self; 8] = [
        Self::Strong,
        Self::Weak,
        Self::AppliesAgain,
        Self::ForgetsCommits,
        Self::HidesPending,
        Self::Reorders,
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
        match self {
            Self::Weak => weakest,
            // Otherwise what is sent twice does no harm.
            Self::HidesPending | Self::GuessesAnswers => {
                LedgerFacts { second_arrival: SecondArrival::AppliedAgain, ..strong }
            }
            _ => strong,
        }
    }

    /// Whether the ledger applies a batch that it has applied.
    pub fn applies_again(self) -> bool {
        matches!(self, Self::AppliesAgain | Self::HidesPending | Self::GuessesAnswers)
            || self.forgets()
    }

    /// Whether a restart forgets what was applied.
    pub fn forgets(self) -> bool {
        matches!(self, Self::ForgetsCommits | Self::Weak)
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|variant| format!("{variant:?}") == text);
        found.ok_or_else(|| format!("there is no variant {text}"))
    }
}
