use std::time::Duration;

use grid_batch_core::Timestamp;

use crate::node::{Block, NodeClient, NodeError, SyncProgress};

/// How far a node has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeProgress {
    pub(super) head: Block,
    pub(super) syncing: Option<SyncProgress>,
}

impl NodeProgress {
    pub(super) async fn read(node: &NodeClient) -> Result<Self, NodeError> {
        let syncing = node.sync_progress().await?;
        Ok(Self { head: node.head().await?, syncing })
    }

    /// Why the node is not up to date. It must have the block `seen`, and its latest block must not be older than
    /// `age_limit`.
    pub(super) fn lag(
        &self,
        seen: u64,
        age_limit: Option<Duration>,
        now: Timestamp,
    ) -> Option<String> {
        let (number, age) = (self.head.id.number, now.since(self.head.time));
        match self.syncing {
            Some(SyncProgress { current: Some(current), highest: Some(highest) }) => {
                return Some(format!("is syncing: block {current} of {highest}"));
            }
            Some(_) => return Some("is syncing".to_owned()),
            None => {}
        }
        if number < seen {
            let behind = seen - number;
            return Some(format!(
                "is at block {number}, {behind} behind block {seen}, which was seen before"
            ));
        }
        // A node that has not found other nodes yet does not report that it is syncing.
        if number == 0 {
            return Some("has only the first block of the chain".to_owned());
        }
        let (minutes, seconds) = (age.as_secs() / 60, age.as_secs() % 60);
        age_limit.is_some_and(|limit| age > limit).then(|| {
            format!(
                "has not had a block after block {number} for {minutes} min {seconds} s \
                 (see evm.head_age_limit)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;

    use super::*;
    use crate::node::BlockNumHash;

    fn state(number: u64) -> NodeProgress {
        let time = Timestamp::from_micros(1_000_000_000);
        let id = BlockNumHash { number, hash: B256::ZERO };
        let head = Block { id, parent_hash: B256::ZERO, time, gas_limit: None };
        NodeProgress { head, syncing: None }
    }

    fn lag(state: NodeProgress, seen: u64) -> Option<String> {
        let now = state.head.time.plus(Duration::from_secs(301));
        state.lag(seen, Some(Duration::from_secs(301)), now)
    }

    #[test]
    fn node_that_has_every_block_seen_is_up_to_date() {
        for number in [7, 8] {
            assert_eq!(lag(state(number), 7), None);
        }
        let text = "is at block 6, 1 behind block 7, which was seen before";
        assert_eq!(lag(state(6), 7).as_deref(), Some(text));
    }

    #[test]
    fn node_with_one_block_is_not_up_to_date() {
        assert_eq!(lag(state(0), 0).as_deref(), Some("has only the first block of the chain"));
        assert_eq!(lag(state(1), 0), None);
    }

    #[test]
    fn node_that_says_so_is_syncing() {
        for (current, highest, text) in [
            (Some(5), Some(900), "is syncing: block 5 of 900"),
            (None, Some(900), "is syncing"),
            (None, None, "is syncing"),
        ] {
            let syncing = Some(SyncProgress { current, highest });
            assert_eq!(lag(NodeProgress { syncing, ..state(7) }, 0).as_deref(), Some(text));
        }
    }

    #[test]
    fn age_counts_only_with_a_limit() {
        let state = state(7);
        let now = state.head.time.plus(Duration::from_secs(302));
        assert_eq!(state.lag(0, None, now), None);
        let limit = Some(Duration::from_secs(301));
        let lag = state.lag(0, limit, now).unwrap();
        assert!(lag.starts_with("has not had a block after block 7 for 5 min 2 s"), "{lag}");
        // The clock of the chain may be ahead.
        assert_eq!(state.lag(0, limit, Timestamp::default()), None);
    }
}
