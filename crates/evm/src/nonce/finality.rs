use std::{collections::HashMap, fmt, time::Duration};

use grid_batch_support::redact_url;

use crate::{
    account::Account,
    node::{Block, BlockNumHash, NodeClient, NodeError},
};

/// Whether a block that a node shows is final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finality {
    /// It has too few confirmations.
    Unconfirmed,
    /// It has enough confirmations at its node, but other nodes have another block.
    Disputed(Dispute),
    /// It has enough confirmations, and the other nodes do not contradict it.
    Final,
}

/// A disagreement: nodes have another block at the height of a block that is confirmed at one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dispute {
    block: BlockNumHash,
    /// The URL of the node that shows it, without secrets.
    shown_by: String,
    /// The URL of a node that has another block, without secrets.
    other: String,
}

impl fmt::Display for Dispute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, shown_by, other } = self;
        write!(
            f,
            "the nodes disagree about block {}: it is {} at {shown_by}, and another one at {other}; \
             waiting until they agree (a node on another branch has to be removed from ledger.urls)",
            block.number, block.hash
        )
    }
}

/// Finds out which blocks of a node are final. It reads each block only once, so it must not be used for longer than
/// one look at the chain.
pub(crate) struct FinalBlocks<'a> {
    account: Account<'a>,
    node: &'a NodeClient,
    confirmations: Confirmations<'a>,
    /// A block that the other nodes did not contradict when they were last asked.
    agreed: Option<BlockNumHash>,
}

impl<'a> Account<'a> {
    pub(crate) fn finality_at(&self, node: &'a NodeClient) -> FinalBlocks<'a> {
        let confirmations = Confirmations::new(node, self.context.options.confirmations);
        FinalBlocks { account: *self, node, confirmations, agreed: None }
    }

    /// Asks the other nodes whether they have a block that one node shows. `None`: no node has another block at this
    /// height, or more nodes have this block than another one.
    ///
    /// A node that does not answer, or has no block at that height yet, counts for neither.
    pub(crate) async fn find_dispute(
        &self,
        shown_by: &NodeClient,
        block: BlockNumHash,
    ) -> Option<Dispute> {
        let read = |node: &'a NodeClient| async move {
            Ok(node.block(block.number).await?.map(|block| block.id))
        };
        let shown = self.ask_others(shown_by, Duration::MAX, read).await;
        let agreeing = 1 + shown.iter().filter(|(_, it)| *it == block).count();
        let (other, _) = shown.iter().find(|(_, it)| *it != block)?;
        if agreeing > shown.len() + 1 - agreeing {
            return None;
        }
        let [shown_by, other] = [shown_by, *other].map(|node| redact_url(node.url()));
        Some(Dispute { block, shown_by, other })
    }
}

impl FinalBlocks<'_> {
    pub(crate) async fn of(&mut self, block: BlockNumHash) -> Result<Finality, NodeError> {
        if !self.confirmations.is_enough(block).await? {
            return Ok(Finality::Unconfirmed);
        }
        if self.agreed != Some(block) {
            if let Some(dispute) = self.account.find_dispute(self.node, block).await {
                return Ok(Finality::Disputed(dispute));
            }
            self.agreed = Some(block);
        }
        Ok(Finality::Final)
    }
}

/// The number of the block with which this one has enough confirmations.
pub(super) fn confirmed_by(block: BlockNumHash, confirmations: u64) -> u64 {
    block.number.saturating_add(confirmations.saturating_sub(1))
}

/// Finds out which blocks of a node have enough confirmations.
struct Confirmations<'a> {
    node: &'a NodeClient,
    confirmations: u64,
    blocks: HashMap<u64, Option<Block>>,
}

impl<'a> Confirmations<'a> {
    fn new(node: &'a NodeClient, confirmations: u64) -> Self {
        Self { node, confirmations, blocks: HashMap::new() }
    }

    /// Several nodes may answer behind one URL, and a lagging one may show a block that the others have replaced. Block
    /// numbers therefore prove nothing, and the parent hashes are followed down to this block.
    async fn is_enough(&mut self, block: BlockNumHash) -> Result<bool, NodeError> {
        let last = confirmed_by(block, self.confirmations);
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

    /// Several nodes behind one URL. Blocks up to the first number are on branch 1, those up to the next number on
    /// branch 2, and so on. Only blocks can be requested.
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
                "parentHash": block_hash(branch, number - 1), "timestamp": "0x1", "transactions": [],
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
        let block = BlockNumHash { number: 5, hash: block_hash(1, 5) };
        (
            Confirmations::new(&node, confirmations).is_enough(block).await.unwrap(),
            server.bodies().len(),
        )
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
        let block = BlockNumHash { number: 5, hash: B256::ZERO };
        Confirmations::new(&node, 1).is_enough(block).await.unwrap_err();
    }
}
