//! Whether a node is up to date. What a pool would do is final only if nodes that are up to date agree
//! on it: one that syncs or lags shows a state of the chain that is long past.

mod highest_block;
mod node_state;
mod quorum;
mod refused_call;
mod simulation;
mod skipped_nodes;
mod unconfirmed_refusals;

pub(crate) use highest_block::HighestBlock;
pub(crate) use quorum::RefusalOutcome;
pub(crate) use refused_call::FirstRefusals;
pub(crate) use simulation::{PoolRefusal, SimulationError, simulate};
pub(crate) use skipped_nodes::SkippedNodes;
pub(crate) use unconfirmed_refusals::UnconfirmedRefusals;
