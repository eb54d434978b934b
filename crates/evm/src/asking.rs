use std::fmt::Display;

use alloy_primitives::Address;
use grid_batch_core::{BatchError, BatchResult, OpenNonce};

use crate::{
    node::{Node, NodeError},
    sighting::Sighting,
};

/// What the first node shows of a nonce that can be asked, and that node. Where there is none, the
/// first error tells why.
pub(crate) async fn first_sighting<'a, 'n>(
    nodes: &'n [Node],
    admin: Address,
    open: &'a OpenNonce,
) -> BatchResult<(&'n Node, Sighting<'a>)> {
    let mut failed = None;
    for node in nodes {
        match Sighting::at(node, admin, open).await {
            Ok(sighting) => return Ok((node, sighting)),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let none = || BatchError::Unavailable("there is no node to ask".to_owned());
    Err(failed.map_or_else(none, BatchError::from))
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
