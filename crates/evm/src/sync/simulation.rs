use std::fmt;

use alloy_primitives::Address;
use grid_batch_withdrawals::Payment;

use crate::{
    action::Action,
    node::{BlockTag, NodeClient, NodeError, call_failure, revert_reason},
};

/// The reason that a node gives why a withdrawal or a call would fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PoolRefusal {
    /// There is no contract at the address of the pool.
    NoContract(Address),
    /// The pool refuses the withdrawal for this reason.
    Reverted(String),
    /// The call would fail for this reason.
    CallFails(String),
}

impl PoolRefusal {
    /// Whether two nodes agree. The texts of the reasons are not compared, because nodes word them differently.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        matches!(self, Self::NoContract(_)) == matches!(other, Self::NoContract(_))
    }
}

impl fmt::Display for PoolRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoContract(pool) => write!(f, "there is no contract at the pool {pool}"),
            Self::Reverted(reason) => write!(f, "the pool refuses the withdrawal: {reason}"),
            Self::CallFails(reason) => write!(f, "the transaction would fail: {reason}"),
        }
    }
}

/// Simulates a withdrawal or a call on the latest block of a node. Returns the gas that it needs, or why it would fail.
pub(crate) async fn simulate(
    node: &NodeClient,
    admin: Address,
    payment: &Payment,
    action: &Action,
) -> Result<Result<u64, PoolRefusal>, NodeError> {
    if let Some(contract) = action.called_contract()
        && node.have_code(&[contract]).await? == [false]
    {
        return Ok(Err(match payment.call {
            Some(_) => PoolRefusal::CallFails(format!("there is no contract at {contract}")),
            None => PoolRefusal::NoContract(contract),
        }));
    }
    let estimate = match node.call(admin, action, BlockTag::Latest).await {
        Ok(_) => node.estimate_gas(admin, action).await,
        Err(error) => Err(error),
    };
    if let (Ok(gas), Some(own)) = (&estimate, payment.own_gas_limit())
        && own < *gas
    {
        let reason = format!("its gas limit is {own}, and it needs {gas} gas");
        return Ok(Err(PoolRefusal::CallFails(reason)));
    }
    estimate.map(Ok).or_else(|error| match (revert_reason(&error), &payment.call) {
        (Some(reason), None) => Ok(Err(PoolRefusal::Reverted(reason))),
        (Some(_), Some(call)) => Ok(Err(PoolRefusal::CallFails(call_failure(&error, &call.abi)))),
        (None, _) => Err(error),
    })
}
