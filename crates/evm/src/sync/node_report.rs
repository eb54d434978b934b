use alloy_primitives::Address;
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_support::redact_url;
use tokio::task::JoinSet;

use super::{
    node_state::NodeState,
    simulation::{PoolRefusal, SimulationError, simulate},
};
use crate::{
    node::{NodeClient, NodeError},
    pool::PoolCall,
};

/// What one node says about a call of a pool.
#[derive(Debug)]
pub(super) struct NodeReport {
    /// The URL of the node, without secrets.
    pub(super) node: String,
    /// How far it has come, and what it says; or why it did not answer.
    pub(super) answer: Result<(NodeState, Simulated), NodeError>,
}

/// How a simulation ended: `None` if the pool would make the withdrawal.
pub(super) type Simulated = Option<PoolRefusal>;

impl NodeReport {
    /// Asks all nodes at the same time. The reports are in the order of the nodes.
    pub(super) async fn read_all(
        nodes: &[NodeClient],
        admin: Address,
        call: &PoolCall,
    ) -> BatchResult<Vec<Self>> {
        let mut tasks = JoinSet::new();
        for (index, node) in nodes.iter().map(NodeClient::duplicate).enumerate() {
            let call = call.clone();
            tasks.spawn(async move { (index, Self::read(&node, admin, &call).await) });
        }
        let mut reports = Vec::with_capacity(nodes.len());
        while let Some(joined) = tasks.join_next().await {
            reports.push(joined.map_err(|error| BatchError::InternalError(error.to_string()))?);
        }
        reports.sort_by_key(|(index, _)| *index);
        Ok(reports.into_iter().map(|(_, report)| report).collect())
    }

    async fn read(node: &NodeClient, admin: Address, call: &PoolCall) -> Self {
        let answer = Self::read_answer(node, admin, call).await;
        Self { node: redact_url(node.url()), answer }
    }

    /// The state is read first: the simulation is then on that block or a later one.
    async fn read_answer(
        node: &NodeClient,
        admin: Address,
        call: &PoolCall,
    ) -> Result<(NodeState, Simulated), NodeError> {
        let state = NodeState::read(node).await?;
        match simulate(node, admin, call).await {
            Ok(_) => Ok((state, None)),
            Err(SimulationError::Refused(refusal)) => Ok((state, Some(refusal))),
            Err(SimulationError::Node(error)) => Err(error),
        }
    }

    /// The number of its latest block, if it has answered.
    pub(super) fn head_number(&self) -> Option<u64> {
        self.answer.as_ref().ok().map(|(state, _)| state.head.number)
    }
}
