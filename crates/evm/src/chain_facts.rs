use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use grid_batch_core::MonotonicTime;
use grid_batch_support::lock;

use crate::price::GasQuote;

/// The state of the chain as last observed, with monotonic times. It is kept in memory only, because it can be observed
/// again after a restart.
#[derive(Debug, Default)]
pub(crate) struct ChainFacts {
    block_gas_limit: Mutex<Option<(MonotonicTime, u64)>>,
    quote: Mutex<Option<(MonotonicTime, GasQuote)>>,
    legacy_only: AtomicBool,
}

impl ChainFacts {
    /// How long an observed block gas limit is used. It changes by at most a thousandth with each block.
    const GAS_LIMIT_AGE: Duration = Duration::from_secs(60);

    pub(crate) fn set_block_gas_limit(&self, limit: u64, now: MonotonicTime) {
        *lock(&self.block_gas_limit) = Some((now, limit));
    }

    /// The gas limit of a block, if it was observed lately.
    pub(crate) fn block_gas_limit(&self, now: MonotonicTime) -> Option<u64> {
        let seen = *lock(&self.block_gas_limit);
        seen.filter(|(at, _)| now.since(*at) < Self::GAS_LIMIT_AGE).map(|(_, limit)| limit)
    }

    pub(crate) fn set_quote(&self, quote: GasQuote, now: MonotonicTime) {
        *lock(&self.quote) = Some((now, quote));
    }

    /// The gas price, if it was observed within this time.
    pub(crate) fn quote(&self, now: MonotonicTime, within: Duration) -> Option<GasQuote> {
        let seen = *lock(&self.quote);
        seen.filter(|(at, _)| now.since(*at) <= within).map(|(_, quote)| quote)
    }

    /// Records that a node has refused the type of a transaction: from now on, transactions have a single price.
    pub(crate) fn set_legacy_only(&self) {
        self.legacy_only.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_legacy_only(&self) -> bool {
        self.legacy_only.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{Clock, ManualClock, Timestamp};

    use super::*;

    #[test]
    fn old_facts_are_forgotten() {
        let clock = ManualClock::at(Timestamp::default());
        let (facts, minute) = (ChainFacts::default(), Duration::from_secs(60));
        assert_eq!(facts.block_gas_limit(clock.monotonic()), None);
        facts.set_block_gas_limit(30_000_000, clock.monotonic());
        facts.set_quote(GasQuote::without_base_fee(7), clock.monotonic());
        assert_eq!(facts.block_gas_limit(clock.monotonic()), Some(30_000_000));
        clock.advance(minute);
        assert_eq!(facts.block_gas_limit(clock.monotonic()), None);
        let quote = |within| facts.quote(clock.monotonic(), within);
        assert_eq!(quote(minute), Some(GasQuote::without_base_fee(7)));
        assert_eq!(quote(minute / 2), None);
    }
}
