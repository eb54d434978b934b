use std::{fmt, time::Duration};

use super::client::WithdrawalView;

/// The progress of a demonstration of withdrawals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WithdrawalProgress {
    /// What has just happened; empty if nothing has.
    pub event: &'static str,
    /// The time since the start.
    pub time: Duration,
    /// The gas price now, in gwei.
    pub gas_price_gwei: u64,
    /// Withdrawals that the server has accepted.
    pub promised: usize,
    /// Withdrawals that are parked.
    pub parked: usize,
    /// Withdrawals under submission, or on the chain and not final.
    pub under_way: usize,
    /// Withdrawals that are final.
    pub withdrawn: usize,
    /// Withdrawals that the pool refused.
    pub failed: usize,
}

impl WithdrawalProgress {
    /// Withdrawals that have ended.
    pub fn ended(&self) -> usize {
        self.withdrawn + self.failed
    }

    /// Whether anything but time and event has changed.
    pub(super) fn differs_from(&self, last: &Self) -> bool {
        Self { time: last.time, event: last.event, ..*self } != *last
    }

    pub(super) fn new(withdrawals: &[WithdrawalView]) -> Self {
        let count = |states: &[&str]| {
            withdrawals.iter().filter(|w| states.contains(&w.state.as_str())).count()
        };
        Self {
            promised: withdrawals.len(),
            parked: count(&["parked"]),
            under_way: count(&["submitting", "pending", "mined", "in_doubt"]),
            withdrawn: count(&["withdrawn"]),
            failed: count(&["failed"]),
            ..Self::default()
        }
    }
}

impl fmt::Display for WithdrawalProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gas_price_gwei, promised, parked, under_way, withdrawn, failed, .. } = self;
        let time = self.time.as_secs_f64();
        write!(
            f,
            "{time:6.1} s   gas {gas_price_gwei:>4} gwei   promised {promised:>3}   \
             under way {under_way:>2}   parked {parked:>2}   withdrawn {withdrawn:>3}   \
             failed {failed:>2}"
        )?;
        match self.event {
            "" => Ok(()),
            event => write!(f, "   ← {event}"),
        }
    }
}
