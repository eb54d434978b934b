use std::fmt;

use serde::Serialize;

/// How a demonstration of withdrawals ended: what was promised, compared with what the chain has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WithdrawalReport {
    /// Withdrawals that the service has promised.
    pub promised: usize,
    /// Those that it says were made.
    pub withdrawn: usize,
    /// Those that it says the pool refused.
    pub failed: usize,
    /// Those that have neither come to a withdrawal nor to a reason: must be none.
    pub lost: usize,
    /// Those that the chain has more than once: must be none.
    pub paid_twice: usize,
    /// Those that the chain has and nobody was promised: must be none.
    pub unpromised: usize,
    /// Those that were made after a later one of their gas admin: must be none.
    pub out_of_order: usize,
    /// Those of which the service says something else than the chain: must be none.
    pub misreported: usize,
    /// Transactions that offered more for gas than the cap allows: must be none.
    pub bids_above_the_cap: usize,
    /// Second claims of a reward that is paid once.
    pub claims_refused: usize,
    /// How often the service was killed.
    pub kills: usize,
    /// From the rise of the price until nothing was parked any more.
    pub parked_seconds: f64,
    /// How long it took.
    pub seconds: f64,
}

impl WithdrawalReport {
    /// Whether everything is as it was promised.
    pub fn is_clean(&self) -> bool {
        let Self { lost, paid_twice, unpromised, out_of_order, misreported, .. } = self;
        [lost, paid_twice, unpromised, out_of_order, misreported, &self.bids_above_the_cap]
            .into_iter()
            .all(|count| *count == 0)
    }
}

impl fmt::Display for WithdrawalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The audit: what the clients were promised, beside what the chain has")?;
        let rows: [(&str, usize); 11] = [
            ("promised", self.promised),
            ("withdrawn", self.withdrawn),
            ("failed, with a reason", self.failed),
            ("lost", self.lost),
            ("paid twice", self.paid_twice),
            ("unpromised", self.unpromised),
            ("out of order", self.out_of_order),
            ("misreported", self.misreported),
            ("bids above the cap", self.bids_above_the_cap),
            ("second claims refused", self.claims_refused),
            ("kills with -9", self.kills),
        ];
        for (name, number) in rows {
            writeln!(f, "{name:>22}  {number}")?;
        }
        writeln!(f, "{:>22}  {:.1} s of {:.1} s", "parked", self.parked_seconds, self.seconds)?;
        let verdict = if self.is_clean() { "clean" } else { "NOT CLEAN" };
        write!(f, "{:>22}  {verdict}", "result")
    }
}
