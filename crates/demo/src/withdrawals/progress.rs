use std::{fmt, time::Duration};

use super::client::WithdrawalView;

/// The progress of a demonstration of withdrawals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WithdrawalProgress {
    /// The latest event; empty if there was none.
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

    /// Whether anything has changed except time and event.
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

impl WithdrawalProgress {
    /// The numbers of the progress: the name, the value and the meaning of each.
    pub const WORDS: [(&str, &str); 5] = [
        ("promised", "the server has accepted them"),
        ("under way", "sent to the chain, and not final there"),
        ("parked", "not sent while the gas price is above the maximum"),
        ("withdrawn", "paid, and final"),
        ("failed", "the pool refuses them"),
    ];

    /// The progress in lines of up to 80 characters that say what each number means.
    pub fn explained(&self) -> Vec<String> {
        let Self { gas_price_gwei, promised, parked, under_way, withdrawn, failed, .. } = self;
        let numbers = [promised, under_way, parked, withdrawn, failed];
        let time = self.time.as_secs_f64();
        let first = format!("{time:10.1} s  gas price {gas_price_gwei} gwei");
        let line = |((name, meaning), number): (&(&str, &str), &usize)| {
            format!("{name:>12}  {number:>8}  {meaning}")
        };
        [first].into_iter().chain(Self::WORDS.iter().zip(numbers).map(line)).collect()
    }
}

/// One line of up to 80 characters, without the event, while there are fewer than 1,000 withdrawals.
impl fmt::Display for WithdrawalProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gas_price_gwei, promised, parked, under_way, withdrawn, failed, .. } = self;
        let time = self.time.as_secs_f64();
        write!(
            f,
            "{time:5.1} s {gas_price_gwei:>4} gwei {promised:>3} promised {under_way:>3} under way \
             {parked:>3} parked {withdrawn:>3} withdrawn {failed:>3} failed"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_large_run_fit() {
        let progress = WithdrawalProgress {
            event: "",
            time: Duration::from_secs(999),
            gas_price_gwei: 9_999,
            promised: 999,
            parked: 999,
            under_way: 999,
            withdrawn: 999,
            failed: 999,
        };
        let lines = [progress.explained(), vec![progress.to_string()]].concat();
        assert_eq!(lines.len(), 7);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    }
}
