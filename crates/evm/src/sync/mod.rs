//! Whether a node is up to date. The refusal of a pool is final only if up-to-date nodes agree on it, because a node
//! that is syncing or lagging shows an old state of the chain.

mod highest_block;
mod node_state;
mod pool_refusals;
mod quorum;
mod refused_call;
mod simulation;

pub(crate) use highest_block::HighestBlock;
pub(crate) use pool_refusals::PoolRefusals;
pub(crate) use quorum::RefusalOutcome;
pub(crate) use simulation::{PoolRefusal, simulate};
