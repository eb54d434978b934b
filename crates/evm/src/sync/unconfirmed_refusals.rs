use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use alloy_primitives::Address;
use grid_batch_core::MonotonicTime;
use grid_batch_withdrawals::{Payment, WithdrawalId};

use super::{quorum::RefusalOutcome, simulation::PoolRefusal};

/// The withdrawal of each pool of an account that the nodes refuse, until a later block confirms it: a node may answer
/// wrongly for a moment.
#[derive(Debug, Default)]
pub(crate) struct UnconfirmedRefusals(Mutex<HashMap<(Address, String), Unconfirmed>>);

/// What the nodes said first about a withdrawal.
#[derive(Debug)]
struct Unconfirmed {
    withdrawal: (WithdrawalId, u32),
    refusal: PoolRefusal,
    block: u64,
    at: MonotonicTime,
}

impl UnconfirmedRefusals {
    /// Decides about a refusal on which the nodes agree at this block. It is final if they have said the same
    /// about the withdrawal at an earlier block. A chain may add no blocks while nothing is sent, so it is also final
    /// if they first said so longer than `without_blocks` ago.
    pub(super) fn confirm(
        &self,
        admin: Address,
        payment: &Payment,
        (refusal, block): (PoolRefusal, u64),
        (now, without_blocks): (MonotonicTime, Duration),
    ) -> RefusalOutcome {
        let key = (admin, payment.pool.clone());
        let withdrawal = (payment.withdrawal_id, payment.generation);
        let mut refusals = self.lock();
        let is_same =
            |it: &&Unconfirmed| it.withdrawal == withdrawal && it.refusal.agrees_with(&refusal);
        let first = match refusals.get(&key).filter(is_same) {
            Some(first) if block > first.block || now.since(first.at) >= without_blocks => {
                return RefusalOutcome::Final(refusal);
            }
            Some(first) => first.block,
            None => {
                let refusal = refusal.clone();
                refusals.insert(key, Unconfirmed { withdrawal, refusal, block, at: now });
                block
            }
        };
        RefusalOutcome::Wait(format!(
            "not final until a later block than {first} shows the same: {refusal}"
        ))
    }

    /// The nodes do not agree any more that the pool refuses the account's withdrawal.
    pub(crate) fn forget(&self, admin: Address, pool: &str) {
        self.lock().remove(&(admin, pool.to_owned()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Address, String), Unconfirmed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
            cancel_requested: false,
            is_restored: false,
            nonce: None,
        }
    }

    fn reverted() -> PoolRefusal {
        PoolRefusal::Reverted("no".to_owned())
    }

    /// Whether this refusal of a withdrawal is final at this block, so many seconds after the start.
    fn is_final(
        refusals: &UnconfirmedRefusals,
        number: u8,
        refusal: PoolRefusal,
        (block, seconds): (u64, u64),
    ) -> bool {
        let now = MonotonicTime::default().plus(Duration::from_secs(seconds));
        let refused = (refusal.clone(), block);
        match refusals.confirm(Address::ZERO, &payment(number), refused, (now, LIMIT)) {
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
        let refusals = UnconfirmedRefusals::default();
        for (block, seconds, expected) in [(7, 0, false), (7, 29, false), (8, 29, true)] {
            assert_eq!(is_final(&refusals, 1, reverted(), (block, seconds)), expected);
        }
    }

    #[test]
    fn time_confirms_a_refusal_without_blocks() {
        let refusals = UnconfirmedRefusals::default();
        for (seconds, expected) in [(0, false), (29, false), (30, true)] {
            assert_eq!(is_final(&refusals, 1, reverted(), (7, seconds)), expected);
        }
    }

    #[test]
    fn another_refusal_confirms_nothing() {
        let refusals = UnconfirmedRefusals::default();
        let missing = || PoolRefusal::NoContract(Address::ZERO);
        assert!(!is_final(&refusals, 1, reverted(), (7, 0)));
        assert!(!is_final(&refusals, 1, missing(), (8, 1)));
        assert!(!is_final(&refusals, 2, missing(), (9, 2)), "another withdrawal");
        refusals.forget(Address::ZERO, &payment(1).pool);
        assert!(!is_final(&refusals, 2, missing(), (10, 3)), "it was accepted meanwhile");
        assert!(is_final(&refusals, 2, missing(), (11, 4)));
    }
}
