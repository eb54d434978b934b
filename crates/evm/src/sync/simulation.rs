use std::fmt;

use alloy_primitives::Address;

use crate::{
    node::{BlockTag, NodeClient, NodeError, revert_reason},
    pool::PoolCall,
};

/// The reason that a node gives why a pool would not make a withdrawal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PoolRefusal {
    /// There is no contract at its address.
    NoContract(Address),
    /// The call fails for this reason.
    Reverted(String),
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
        }
    }
}

/// Simulates the call of a pool on the latest block of a node. Returns the gas that it needs, or why the pool
/// refuses.
pub(crate) async fn simulate(
    node: &NodeClient,
    admin: Address,
    PoolCall { pool, data }: &PoolCall,
) -> Result<Result<u64, PoolRefusal>, NodeError> {
    if !node.has_code(*pool).await? {
        return Ok(Err(PoolRefusal::NoContract(*pool)));
    }
    let estimate = match node.call(admin, *pool, data, BlockTag::Latest).await {
        Ok(_) => node.estimate_gas(admin, *pool, data).await,
        Err(error) => Err(error),
    };
    estimate.map(Ok).or_else(|error| match revert_reason(&error) {
        Some(reason) => Ok(Err(PoolRefusal::Reverted(reason))),
        None => Err(error),
    })
}
