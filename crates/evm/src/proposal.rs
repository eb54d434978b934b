use alloy_primitives::{Address, Bytes};
use grid_batch_withdrawals::Payment;

use crate::{
    address::{parse_address, parse_beneficiary},
    amount::parse_amount,
    pool::propose_withdraw,
};

/// What a pool is called with for a withdrawal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub(crate) pool: Address,
    pub(crate) data: Bytes,
}

impl Proposal {
    /// The proposal of a withdrawal. An error is the rule that the withdrawal breaks.
    pub(crate) fn of(payment: &Payment) -> Result<Self, String> {
        let pool = parse_address(&payment.pool).map_err(|error| error.to_string())?;
        let beneficiary =
            parse_beneficiary(&payment.beneficiary).map_err(|error| error.to_string())?;
        let amount = parse_amount(&payment.amount).map_err(|error| error.to_string())?;
        Ok(Self { pool, data: propose_withdraw(amount, beneficiary) })
    }
}
