use std::collections::HashMap;

use crate::node::{Block, BlockId, NodeClient, NodeError};

/// The number of the block that gives this one enough confirmations.
pub(super) fn final_with(block: BlockId, confirmations: u64) -> u64 {
    block.number.saturating_add(confirmations.saturating_sub(1))
}

/// Whether a block has enough confirmations.
pub(super) async fn is_final(
    node: &NodeClient,
    block: BlockId,
    confirmations: u64,
) -> Result<bool, NodeError> {
    Confirmations::new(node, confirmations).is_final(block).await
}

/// Tells which blocks of a node have enough confirmations. It reads each block once, so it is for one
/// look at the chain.
pub(crate) struct Confirmations<'a> {
    node: &'a NodeClient,
    confirmations: u64,
    blocks: HashMap<u64, Option<Block>>,
}

impl<'a> Confirmations<'a> {
    pub(crate) fn new(node: &'a NodeClient, confirmations: u64) -> Self {
        Self { node, confirmations, blocks: HashMap::new() }
    }

    /// Several nodes may answer behind one URL, and one that lags may show a block that the others have
    /// replaced. So block numbers prove nothing: the parent hashes are followed down to this block.
    pub(crate) async fn is_final(&mut self, block: BlockId) -> Result<bool, NodeError> {
        let last = final_with(block, self.confirmations);
        let Some(mut current) = self.block(last).await? else { return Ok(false) };
        while current.id.number > block.number {
            match self.block(current.id.number - 1).await? {
                Some(parent) if parent.id.hash == current.parent_hash => current = parent,
                _ => return Ok(false),
            }
        }
        Ok(current.id == block)
    }

    async fn block(&mut self, number: u64) -> Result<Option<Block>, NodeError> {
        if let Some(block) = self.blocks.get(&number) {
            return Ok(*block);
        }
        let block = self.node.block(number).await?;
        self.blocks.insert(number, block);
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use alloy_primitives::B256;
    use serde_json::{Value, json};

    use super::*;
    use crate::{node::tests::node_answering, test_server::TestServer};

    /// The hash of the block with this number on a branch.
    fn block_hash(branch: u8, number: u64) -> B256 {
        let mut hash = B256::with_last_byte(branch);
        hash[..8].copy_from_slice(&number.to_be_bytes());
        hash
    }

    /// Several nodes behind one URL: blocks up to the first number are on branch 1, those up to the
    /// next one on branch 2. Only blocks can be requested.
    async fn node_on(ends: &[u64]) -> (TestServer, NodeClient) {
        let branch_of = |number: u64| {
            let branch = ends.iter().position(|end| number <= *end);
            branch.map(|branch| u8::try_from(branch).unwrap() + 1)
        };
        let mut blocks = HashMap::new();
        for number in 1..=*ends.last().unwrap() {
            let branch = branch_of(number).unwrap();
            let block = json!({
                "number": format!("{number:#x}"), "hash": block_hash(branch, number),
                "parentHash": block_hash(branch, number - 1), "transactions": [],
            });
            blocks.insert(format!("{number:#x}"), block);
        }
        node_answering(move |method, params| match method {
            "eth_getBlockByNumber" => {
                let number = params[0].as_str().unwrap();
                json!({"result": blocks.get(number).cloned().unwrap_or_default()})
            }
            _ => json!({"error": {"code": -32000, "message": "missing trie node"}}),
        })
        .await
    }

    async fn is_final_at(ends: &[u64], confirmations: u64) -> (bool, usize) {
        let (server, node) = node_on(ends).await;
        let block = BlockId { number: 5, hash: block_hash(1, 5) };
        (is_final(&node, block, confirmations).await.unwrap(), server.bodies().len())
    }

    #[tokio::test]
    async fn block_is_final_with_enough_confirmations() {
        for (last, confirmations, expected) in
            [(5, 0, true), (5, 1, true), (4, 1, false), (6, 3, false), (7, 3, true), (90, 3, true)]
        {
            assert_eq!(is_final_at(&[last], confirmations).await.0, expected, "{last}");
        }
    }

    #[tokio::test]
    async fn blocks_of_another_branch_do_not_confirm() {
        assert!(!is_final_at(&[4, 90], 1).await.0);
        for fork in 4..7 {
            assert!(!is_final_at(&[fork, 90], 3).await.0, "{fork}");
        }
        assert!(is_final_at(&[7, 90], 3).await.0);
    }

    #[tokio::test]
    async fn each_block_is_requested_once() {
        assert_eq!(is_final_at(&[90], 64).await, (true, 64));
        assert_eq!(is_final_at(&[60], 64).await, (false, 1));
    }

    #[tokio::test]
    async fn failing_node_is_an_error() {
        let (_server, node) =
            node_answering(|_, _: &Value| json!({"error": {"code": -32000, "message": "no"}}))
                .await;
        let block = BlockId { number: 5, hash: B256::ZERO };
        is_final(&node, block, 1).await.unwrap_err();
    }
}
