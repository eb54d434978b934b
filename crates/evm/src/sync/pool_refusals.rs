use std::time::Duration;

use alloy_primitives::Address;
use grid_batch_core::MonotonicTime;
use grid_batch_withdrawals::{Payment, WithdrawalId};

use super::{quorum::RefusalOutcome, simulation::PoolRefusal};
use crate::memory::Memory;

/// For each pool of an account, the withdrawal that nodes last refused.
#[derive(Debug, Default)]
pub(crate) struct PoolRefusals(Memory<(Address, String), Refused>);

#[derive(Debug, Default)]
struct Refused {
    withdrawal: Option<(WithdrawalId, u32)>,
    /// The highest block that was known when it was first refused, and when that was.
    required: Option<(u64, MonotonicTime)>,
    /// The refusal on which the nodes first agreed.
    agreed: Option<Agreed>,
}

#[derive(Debug)]
struct Agreed {
    refusal: PoolRefusal,
    block: u64,
    at: MonotonicTime,
}

impl PoolRefusals {
    /// After this time, the highest block is taken anew, so that a node that stays behind does not become up to date
    /// just by waiting.
    const VALID_FOR: Duration = Duration::from_secs(60);

    /// The block that a node must have for its refusal to count. It is not the latest one, because on a chain with fast
    /// blocks a node does not always have the block that another one has just shown.
    pub(super) fn required_block(
        &self,
        admin: Address,
        payment: &Payment,
        highest: u64,
        now: MonotonicTime,
    ) -> u64 {
        self.with(admin, payment, |refused| {
            let required = refused.required.filter(|(_, at)| now.since(*at) < Self::VALID_FOR);
            refused.required.insert(required.unwrap_or((highest, now))).0
        })
    }

    /// Decides about a refusal on which the nodes agree at this block. It is final if they have reported the same about
    /// the withdrawal at an earlier block, because a node may briefly answer wrongly. A chain may add no blocks while
    /// nothing is sent, so a refusal is also final if it was first reported longer than `without_blocks` ago.
    pub(super) fn confirm(
        &self,
        admin: Address,
        payment: &Payment,
        refusal: PoolRefusal,
        block: u64,
        now: MonotonicTime,
        without_blocks: Duration,
    ) -> RefusalOutcome {
        self.with(admin, payment, |refused| {
            let agreed = refused.agreed.take().filter(|it| it.refusal.agrees_with(&refusal));
            let is_first = agreed.is_none();
            let first =
                agreed.unwrap_or_else(|| Agreed { refusal: refusal.clone(), block, at: now });
            let Agreed { block: first, at, .. } = *refused.agreed.insert(first);
            if !is_first && (block > first || now.since(at) >= without_blocks) {
                return RefusalOutcome::Final(refusal);
            }
            RefusalOutcome::Wait(format!(
                "not final until a later block than {first} shows the same: {refusal}"
            ))
        })
    }

    /// Forgets the refusal, because the nodes no longer agree on it.
    pub(crate) fn forget(&self, admin: Address, payment: &Payment) {
        self.with(admin, payment, |refused| refused.agreed = None);
    }

    fn with<T>(
        &self,
        admin: Address,
        payment: &Payment,
        change: impl FnOnce(&mut Refused) -> T,
    ) -> T {
        let withdrawal = Some((payment.withdrawal_id, payment.generation));
        self.0.with(&(admin, payment.pool.clone()), |refused| {
            if refused.withdrawal != withdrawal {
                *refused = Refused { withdrawal, ..Refused::default() };
            }
            change(refused)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn payment(number: u8) -> Payment {
        Payment {
            withdrawal_id: WithdrawalId::from_bytes([number; 16]),
            generation: 1,
            pool: String::new(),
            beneficiary: String::new(),
            amount: String::new(),
            call: None,
            cancel_requested: false,
            speed_up_at: None,
            is_restored: false,
            nonce: None,
        }
    }

    fn reverted() -> PoolRefusal {
        PoolRefusal::Reverted("no".to_owned())
    }

    /// Whether this refusal of a withdrawal is final at this block, this many seconds after the start.
    fn is_final(
        refusals: &PoolRefusals,
        number: u8,
        refusal: PoolRefusal,
        block: u64,
        seconds: u64,
    ) -> bool {
        let now = MonotonicTime::default().plus(Duration::from_secs(seconds));
        let (payment, seen) = (payment(number), refusal.clone());
        match refusals.confirm(Address::ZERO, &payment, seen, block, now, LIMIT) {
            RefusalOutcome::Final(it) => it == refusal,
            RefusalOutcome::Wait(reason) => {
                assert!(reason.ends_with(&refusal.to_string()), "{reason}");
                false
            }
            RefusalOutcome::OtherNode(reason) => panic!("{reason}"),
        }
    }

    #[test]
    fn later_block_confirms_a_refusal() {
        let refusals = PoolRefusals::default();
        for (block, seconds, expected) in [(7, 0, false), (7, 29, false), (8, 29, true)] {
            assert_eq!(is_final(&refusals, 1, reverted(), block, seconds), expected);
        }
    }

    #[test]
    fn time_confirms_a_refusal_without_blocks() {
        let refusals = PoolRefusals::default();
        for (seconds, expected) in [(0, false), (29, false), (30, true)] {
            assert_eq!(is_final(&refusals, 1, reverted(), 7, seconds), expected);
        }
    }

    #[test]
    fn another_refusal_confirms_nothing() {
        let refusals = PoolRefusals::default();
        let missing = || PoolRefusal::NoContract(Address::ZERO);
        assert!(!is_final(&refusals, 1, reverted(), 7, 0));
        assert!(!is_final(&refusals, 1, missing(), 8, 1));
        assert!(!is_final(&refusals, 2, missing(), 9, 2), "another withdrawal");
        refusals.forget(Address::ZERO, &payment(2));
        assert!(!is_final(&refusals, 2, missing(), 10, 3), "it was accepted meanwhile");
        assert!(is_final(&refusals, 2, missing(), 11, 4));
    }

    #[test]
    fn block_of_the_first_refusal_counts_for_a_while() {
        let refusals = PoolRefusals::default();
        let at = |seconds| MonotonicTime::default().plus(Duration::from_secs(seconds));
        let block = |payment: &Payment, highest, seconds| {
            refusals.required_block(Address::ZERO, payment, highest, at(seconds))
        };
        assert_eq!(block(&payment(1), 7, 0), 7);
        assert_eq!(block(&payment(1), 9, 59), 7);
        assert_eq!(block(&payment(1), 9, 60), 9);
        assert_eq!(block(&payment(2), 11, 61), 11, "another withdrawal");
    }
}
