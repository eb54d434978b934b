use crate::node::{BlockId, Node, NodeError};

/// The block with which so many hold this one that it is believed.
pub(crate) fn final_with(block: BlockId, confirmations: u64) -> u64 {
    block.number.saturating_add(confirmations.saturating_sub(1))
}

/// Whether so many blocks hold this one that it is believed.
///
/// Several nodes may answer in one's name, and one that is behind shows a block that the others have
/// replaced. So a number proves nothing: each block is to name the one below, down to this.
pub(crate) async fn is_final(
    node: &Node,
    block: BlockId,
    confirmations: u64,
) -> Result<bool, NodeError> {
    let Some(mut held) = node.block(final_with(block, confirmations)).await? else {
        return Ok(false);
    };
    while held.id.number > block.number {
        match node.block(held.id.number - 1).await? {
            Some(below) if below.id.hash == held.parent_hash => held = below,
            _ => return Ok(false),
        }
    }
    Ok(held.id == block)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use alloy_primitives::B256;
    use serde_json::{Value, json};

    use super::*;
    use crate::{node::tests::node_asked, served::Served};

    /// The block of this number on a branch.
    fn block_on(branch: u8, number: u64) -> B256 {
        let mut hash = B256::with_last_byte(branch);
        hash[..8].copy_from_slice(&number.to_be_bytes());
        hash
    }

    /// A node behind which several answer: it shows the blocks up to the first number as they are on
    /// branch 1, those up to the next as on branch 2. It knows nothing but blocks.
    async fn node_on(ends: &[u64]) -> (Served, Node) {
        let branch_of = |number: u64| {
            let branch = ends.iter().position(|end| number <= *end);
            branch.map(|branch| u8::try_from(branch).unwrap() + 1)
        };
        let mut blocks = HashMap::new();
        for number in 1..=*ends.last().unwrap() {
            let branch = branch_of(number).unwrap();
            let block = json!({
                "number": format!("{number:#x}"), "hash": block_on(branch, number),
                "parentHash": block_on(branch, number - 1), "transactions": [],
            });
            blocks.insert(format!("{number:#x}"), block);
        }
        node_asked(move |method, params| match method {
            "eth_getBlockByNumber" => {
                let number = params[0].as_str().unwrap();
                json!({"result": blocks.get(number).cloned().unwrap_or_default()})
            }
            _ => json!({"error": {"code": -32000, "message": "missing trie node"}}),
        })
        .await
    }

    async fn is_final_at(ends: &[u64], confirmations: u64) -> (bool, usize) {
        let (served, node) = node_on(ends).await;
        let block = BlockId { number: 5, hash: block_on(1, 5) };
        (is_final(&node, block, confirmations).await.unwrap(), served.bodies().len())
    }

    #[tokio::test]
    async fn a_block_is_final_when_so_many_hold_it() {
        for (last, confirmations, expected) in
            [(5, 0, true), (5, 1, true), (4, 1, false), (6, 3, false), (7, 3, true), (90, 3, true)]
        {
            assert_eq!(is_final_at(&[last], confirmations).await.0, expected, "{last}");
        }
    }

    #[tokio::test]
    async fn blocks_of_another_branch_make_nothing_final() {
        assert!(!is_final_at(&[4, 90], 1).await.0);
        for fork in 4..7 {
            assert!(!is_final_at(&[fork, 90], 3).await.0, "{fork}");
        }
        assert!(is_final_at(&[7, 90], 3).await.0);
    }

    #[tokio::test]
    async fn a_block_is_asked_for_once() {
        assert_eq!(is_final_at(&[90], 64).await, (true, 64));
        assert_eq!(is_final_at(&[60], 64).await, (false, 1));
    }

    #[tokio::test]
    async fn a_node_that_fails_says_nothing() {
        let (_served, node) =
            node_asked(|_, _: &Value| json!({"error": {"code": -32000, "message": "no"}})).await;
        let block = BlockId { number: 5, hash: B256::ZERO };
        is_final(&node, block, 1).await.unwrap_err();
    }
}
