use std::fmt;

use alloy_primitives::Address;

use crate::{
    node::{BlockTag, NodeClient, NodeError, revert_reason},
    pool::PoolCall,
};

/// Why a node says that a pool would not make a withdrawal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PoolRefusal {
    /// There is no contract at its address.
    NoContract(Address),
    /// The call fails for this reason.
    Reverted(String),
}

impl PoolRefusal {
    /// Whether two nodes say the same. They word the reasons of a failed call differently.
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

/// Why there is no estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SimulationError {
    /// The node says that the pool refuses.
    Refused(PoolRefusal),
    /// The node did not answer.
    Node(NodeError),
}

impl From<NodeError> for SimulationError {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

/// Simulates the call of a pool on the latest block of a node, and estimates its gas.
pub(crate) async fn simulate(
    node: &NodeClient,
    admin: Address,
    PoolCall { pool, data }: &PoolCall,
) -> Result<u64, SimulationError> {
    if !node.has_code(*pool).await? {
        return Err(SimulationError::Refused(PoolRefusal::NoContract(*pool)));
    }
    node.call(admin, *pool, data, BlockTag::Latest).await.map_err(call_failed)?;
    node.estimate_gas(admin, *pool, data).await.map_err(call_failed)
}

fn call_failed(error: NodeError) -> SimulationError {
    match revert_reason(&error) {
        Some(reason) => SimulationError::Refused(PoolRefusal::Reverted(reason)),
        None => SimulationError::Node(error),
    }
}
