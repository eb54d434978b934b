use alloy_primitives::{Address, Bytes};
use grid_batch_withdrawals::Payment;

use super::contract::propose_withdraw;
use crate::values::{parse_address, parse_amount, parse_beneficiary};

/// The call of a pool's contract that makes a withdrawal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolCall {
    pub(crate) pool: Address,
    pub(crate) data: Bytes,
}

impl PoolCall {
    /// The call for this withdrawal. The error is the rule that the withdrawal breaks.
    pub(crate) fn for_payment(payment: &Payment) -> Result<Self, String> {
        let pool = parse_address(&payment.pool).map_err(|error| error.to_string())?;
        let beneficiary =
            parse_beneficiary(&payment.beneficiary).map_err(|error| error.to_string())?;
        let amount = parse_amount(&payment.amount).map_err(|error| error.to_string())?;
        Ok(Self { pool, data: propose_withdraw(amount, beneficiary) })
    }
}
