use std::fmt::Display;

use alloy_primitives::Address;
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_withdrawals::AssignedNonce;

use crate::{
    depth::is_final,
    node::{Node, NodeError},
    shared::Shared,
    sighting::Sighting,
};

/// What is seen of a nonce, at which node.
#[derive(Debug)]
pub(crate) struct Seen<'a, 'n> {
    pub(crate) node: &'n Node,
    pub(crate) sighting: Sighting<'a>,
    /// It is mined, and so deep that it is believed.
    pub(crate) is_final: bool,
}

impl<'a, 'n> Seen<'a, 'n> {
    async fn at(
        node: &'n Node,
        shared: &Shared,
        admin: Address,
        open: &'a AssignedNonce,
    ) -> Result<Self, NodeError> {
        let sighting = Sighting::at(node, admin, open).await?;
        let is_final = match &sighting {
            Sighting::Mined(mined) => {
                is_final(node, mined.receipt.block, shared.confirmations).await?
            }
            // On another chain the account has other transactions.
            Sighting::Elsewhere => {
                check_chain(node, shared).await?;
                false
            }
            Sighting::Waiting | Sighting::Gone => false,
        };
        Ok(Self { node, sighting, is_final })
    }

    fn outweighs(&self, other: &Self) -> bool {
        self.sighting.weight() > other.sighting.weight()
    }
}

/// The weightiest that the nodes show of a nonce. None hides what another shows: they are asked in
/// turn until one shows what is final.
///
/// A node that fails is passed over; where all fail, the first error tells why.
pub(crate) async fn look<'a, 'n>(
    nodes: &'n [Node],
    shared: &Shared,
    admin: Address,
    open: &'a AssignedNonce,
) -> BatchResult<Seen<'a, 'n>> {
    let (mut best, mut failed) = (None, None);
    for node in nodes {
        match Seen::at(node, shared, admin, open).await {
            Ok(seen) if seen.is_final => return Ok(seen),
            Ok(seen) if best.as_ref().is_none_or(|best| seen.outweighs(best)) => best = Some(seen),
            Ok(_) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let none = || BatchError::Unavailable("there is no node to ask".to_owned());
    best.ok_or_else(|| failed.map_or_else(none, BatchError::from))
}

/// What the first node says that finds something.
///
/// A node that fails is passed over; where all fail, the first error tells why.
pub(crate) async fn first_found<'n, T, F>(
    nodes: &'n [Node],
    find: impl Fn(&'n Node) -> F,
) -> Result<Option<T>, NodeError>
where
    F: Future<Output = Result<Option<T>, NodeError>>,
{
    let (mut has_answered, mut failed) = (false, None);
    for node in nodes {
        match find(node).await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => has_answered = true,
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.filter(|_| !has_answered).map_or(Ok(None), Err)
}

/// A node of another chain says nothing of ours.
pub(crate) async fn check_chain(node: &Node, shared: &Shared) -> Result<(), NodeError> {
    let (id, ours) = (node.chain_id().await?, shared.chain_id);
    if id == ours {
        return Ok(());
    }
    Err(NodeError::Answer(format!("the node is of the chain {id}, and not of {ours}")))
}

/// What was read, or what is wrong with what the house gave.
pub(crate) fn usable<T>(read: Result<T, impl Display>) -> BatchResult<T> {
    read.map_err(|error| BatchError::InternalError(error.to_string()))
}

impl From<NodeError> for BatchError {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Answer(_) => Self::InvalidAnswer(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}
