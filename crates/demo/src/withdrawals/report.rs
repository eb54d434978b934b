use std::{fmt, time::Duration};

use serde::Serialize;

/// The result of a demonstration of withdrawals: what the server accepted, compared with the chain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WithdrawalReport {
    /// Withdrawals that the server accepted.
    pub promised: usize,
    /// Withdrawals that the server reports as made.
    pub withdrawn: usize,
    /// Withdrawals that the server reports as refused by the pool.
    pub failed: usize,
    /// Withdrawals that were neither made nor refused: must be 0.
    pub lost: usize,
    /// Withdrawals that are on the chain more than once: must be 0.
    pub paid_twice: usize,
    /// Withdrawals on the chain that were not requested: must be 0.
    pub unpromised: usize,
    /// Withdrawals that were made after a later one of their gas admin: must be 0.
    pub out_of_order: usize,
    /// Withdrawals whose report contradicts the chain: must be 0.
    pub misreported: usize,
    /// Transactions that offered more than the maximum gas price: must be 0.
    pub bids_above_the_cap: usize,
    /// Second claims of a reward that were refused.
    pub claims_refused: usize,
    /// How often the server was killed.
    pub kills: usize,
    /// The time from the rise of the gas price until no withdrawal was parked.
    pub parked_seconds: f64,
    /// The duration of the demonstration.
    pub seconds: f64,
}

/// The numbers that were counted during the run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WithdrawalCounts {
    pub(super) claims_refused: usize,
    pub(super) kills: usize,
    pub(super) parked_for: Duration,
    pub(super) time: Duration,
}

impl WithdrawalReport {
    /// Whether all numbers that must be 0 are 0.
    pub fn is_clean(&self) -> bool {
        let Self { lost, paid_twice, unpromised, out_of_order, misreported, .. } = self;
        [lost, paid_twice, unpromised, out_of_order, misreported, &self.bids_above_the_cap]
            .into_iter()
            .all(|count| *count == 0)
    }
}

impl fmt::Display for WithdrawalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Audit: the withdrawals that the server accepted, compared with the chain")?;
        let rows: [(&str, usize, &str); 11] = [
            ("promised", self.promised, "accepted by the server"),
            ("withdrawn", self.withdrawn, "paid, and final"),
            ("failed, with a reason", self.failed, "the pool refused them"),
            ("lost", self.lost, "neither paid nor refused: must be 0"),
            ("paid twice", self.paid_twice, "must be 0"),
            ("unpromised", self.unpromised, "paid, but not requested: must be 0"),
            ("out of order", self.out_of_order, "paid after a later one: must be 0"),
            ("misreported", self.misreported, "the server reports another result: must be 0"),
            (
                "bids above the cap",
                self.bids_above_the_cap,
                "above the maximum gas price: must be 0",
            ),
            ("second claims refused", self.claims_refused, "a member gets a reward once"),
            ("kills with -9", self.kills, "the server was killed and started again"),
        ];
        for (name, number, meaning) in rows {
            writeln!(f, "{name:>22}  {number:<8}  {meaning}")?;
        }
        writeln!(f, "{:>22}  {:.1} s of {:.1} s", "parked", self.parked_seconds, self.seconds)?;
        let result = if self.is_clean() { "clean" } else { "NOT CLEAN" };
        write!(f, "{:>22}  {result}", "result")
    }
}
