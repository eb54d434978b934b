//! Whether a node is up to date. The refusal of a pool is final only if nodes that are up to date agree
//! on it: one that syncs or lags shows a state of the chain that is long past.

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
