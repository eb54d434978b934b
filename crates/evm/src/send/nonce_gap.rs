use alloy_primitives::Address;
use thiserror::Error;

use super::{
    answer::{self, Step},
    attempt::SendAttempt,
};

/// More nonces are free than are filled without an operator. The withdrawal is parked until the gap is
/// shorter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the node shows no transactions of {account} with the nonces {first} to {last}, and the next one is \
     {}: more than evm.longest_gap ({limit}) nonces are missing, the lowest is {first}. If the node lags \
     behind, nothing has to be done. If the chain has lost these transactions, set evm.longest_gap to {} \
     and restart: what is stored is sent again, and free nonces are filled with empty transfers",
    last + 1,
    last + 1 - first
)]
pub(super) struct NonceGap {
    account: Address,
    first: u64,
    last: u64,
    limit: u64,
}

impl NonceGap {
    /// The gap between the number of the account's transactions and the next nonce, if it is too long.
    fn find(account: Address, count: u64, nonce: u64, limit: u64) -> Option<Self> {
        let is_too_long = nonce.checked_sub(count).is_some_and(|gap| gap > limit);
        is_too_long.then(|| Self { account, first: count, last: nonce - 1, limit })
    }
}

impl SendAttempt<'_> {
    /// Parks the withdrawal that has this nonce if too many lower ones are missing at the node.
    pub(super) fn check_gap(&self, count: u64, nonce: u64) -> Step<()> {
        match NonceGap::find(self.admin, count, nonce, self.context.longest_gap) {
            Some(gap) => Err(self.parked(gap)),
            None => Ok(()),
        }
    }

    /// The same for the nonce that would be assigned.
    pub(super) async fn check_gap_before_next(&self, count: u64) -> Step<()> {
        let next = self.context.store.next_nonce(self.service_id()).await;
        let next = next.map_err(answer::store_failed)?.unwrap_or_default();
        self.check_gap(count, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_is_too_long_above_the_limit() {
        let find = |count, nonce| NonceGap::find(Address::ZERO, count, nonce, 64);
        assert_eq!((find(5, 69), find(9, 5), find(0, 0)), (None, None, None));
        let gap = find(5, 70).unwrap();
        assert_eq!((gap.first, gap.last), (5, 69));
        let text = gap.to_string();
        assert!(text.contains("the nonces 5 to 69, and the next one is 70"), "{text}");
        assert!(text.contains("set evm.longest_gap to 65"), "{text}");
    }
}
