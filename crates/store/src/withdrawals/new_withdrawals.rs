use std::collections::HashMap;

use grid_batch_core::{BatchConflict, NewBatch};
use grid_batch_withdrawals::{
    Amount, PaymentLimitError, PaymentLimits, Withdrawal, WithdrawalConflict, WithdrawalId,
};

use crate::{batch::PaymentSums, intake::Capacity, sql::StoreError};

/// A withdrawal and its first batch.
pub(super) type Pair<'a> = (&'a Withdrawal, NewBatch);

/// What is done with a withdrawal that is scheduled.
pub(super) enum Decision {
    /// It is stored behind so many open batches.
    Store {
        ahead: u64,
    },
    /// It is stored already.
    Keep,
    Refuse(WithdrawalConflict),
}

/// What is done with each withdrawal, and the pairs to store.
pub(super) fn decide<'p>(
    pairs: &'p [Pair<'p>],
    stored: Vec<Withdrawal>,
    limits: &mut IntakeLimits<'_>,
) -> Result<(Vec<Decision>, Vec<&'p Pair<'p>>), StoreError> {
    let mut known: HashMap<WithdrawalId, Withdrawal> =
        stored.into_iter().map(|withdrawal| (withdrawal.id, withdrawal)).collect();
    let (mut decisions, mut new) = (Vec::new(), Vec::new());
    for pair in pairs {
        let decision = decide_one(pair, &known, limits)?;
        if let Decision::Store { .. } = decision {
            known.insert(pair.0.id, pair.0.clone());
            new.push(pair);
        }
        decisions.push(decision);
    }
    Ok((decisions, new))
}

fn decide_one(
    (withdrawal, batch): &Pair<'_>,
    known: &HashMap<WithdrawalId, Withdrawal>,
    limits: &mut IntakeLimits<'_>,
) -> Result<Decision, StoreError> {
    match known.get(&withdrawal.id) {
        Some(stored) if has_same_terms(stored, withdrawal) => return Ok(Decision::Keep),
        Some(stored) => {
            let stored = Box::new(stored.clone());
            return Ok(Decision::Refuse(WithdrawalConflict::OtherTerms { stored }));
        }
        None => {}
    }
    if let Err(error) = limits.check_payment(withdrawal)? {
        return Ok(Decision::Refuse(error.into()));
    }
    let ahead = limits.capacity.open(batch.service_id.as_str());
    match limits.capacity.take(batch, false) {
        Ok(()) => {
            limits.count_payment(withdrawal)?;
            Ok(Decision::Store { ahead })
        }
        Err(BatchConflict::QueueFull { service_id, open, limit }) => {
            Ok(Decision::Refuse(WithdrawalConflict::QueueFull { service_id, open, limit }))
        }
        Err(other) => Err(StoreError::corrupt(other)),
    }
}

/// What limits the withdrawals that a group may store.
pub(super) struct IntakeLimits<'a> {
    pub(super) capacity: Capacity<'a>,
    pub(super) sums: PaymentSums,
    pub(super) payments: &'a PaymentLimits,
}

impl IntakeLimits<'_> {
    fn check_payment(
        &self,
        withdrawal: &Withdrawal,
    ) -> Result<Result<(), PaymentLimitError>, StoreError> {
        let amount = amount_of(withdrawal)?;
        Ok(self.sums.check(self.payments, &withdrawal.pool, &amount))
    }

    fn count_payment(&mut self, withdrawal: &Withdrawal) -> Result<(), StoreError> {
        self.sums.add(&withdrawal.pool, &amount_of(withdrawal)?);
        Ok(())
    }
}

/// The amount of a withdrawal, which is stored as a text.
pub(super) fn amount_of(withdrawal: &Withdrawal) -> Result<Amount, StoreError> {
    withdrawal.amount.parse().map_err(StoreError::corrupt)
}

/// Whether both are the same withdrawal. The gas admin and the idempotency key may differ: a pool can
/// get another gas admin, and the only withdrawal of a member may have been requested with another key.
fn has_same_terms(stored: &Withdrawal, given: &Withdrawal) -> bool {
    let Withdrawal { id, kind, reward_id, pool, beneficiary, amount, .. } = stored;
    (id, kind, reward_id, pool, beneficiary, amount)
        == (
            &given.id,
            &given.kind,
            &given.reward_id,
            &given.pool,
            &given.beneficiary,
            &given.amount,
        )
}
