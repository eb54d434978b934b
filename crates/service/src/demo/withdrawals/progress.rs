use std::{fmt, time::Duration};

use crate::demo::withdrawals::client::Told;

/// How far a demonstration of withdrawals has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WithdrawalProgress {
    /// What has just happened, where something has.
    pub event: &'static str,
    /// Since the start.
    pub time: Duration,
    /// What a unit of gas costs now, in gwei.
    pub gas_price_gwei: u64,
    /// Withdrawals that the service has promised.
    pub promised: usize,
    /// Those that a closed gate keeps back.
    pub parked: usize,
    /// Those that are on their way to the chain, or on it and not final.
    pub under_way: usize,
    /// Those that were made.
    pub withdrawn: usize,
    /// Those that the pool refused.
    pub failed: usize,
}

impl WithdrawalProgress {
    /// How many have ended.
    pub fn ended(&self) -> usize {
        self.withdrawn + self.failed
    }

    /// Whether anything but the time is another one.
    pub(super) fn is_news_after(&self, told: &Self) -> bool {
        Self { time: told.time, event: told.event, ..*self } != *told
    }

    pub(super) fn of(withdrawals: &[Told]) -> Self {
        let count = |states: &[&str]| {
            withdrawals.iter().filter(|told| states.contains(&told.state.as_str())).count()
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
