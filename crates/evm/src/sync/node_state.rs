use std::{fmt, time::Duration};

use grid_batch_core::Timestamp;

use crate::node::{Block, NodeClient, NodeError, SyncProgress};

/// How far a node has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeState {
    pub(super) head: Block,
    pub(super) syncing: Option<SyncProgress>,
}

/// Why a node is not up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lag {
    /// It says so itself.
    Syncing(SyncProgress),
    /// It has the first block only.
    FirstBlockOnly,
    /// It does not have a block that was seen before.
    Behind { number: u64, seen: u64 },
    /// Its latest block is older than the limit.
    Old { number: u64, age: Duration },
}

impl NodeState {
    pub(super) async fn read(node: &NodeClient) -> Result<Self, NodeError> {
        let syncing = node.sync_progress().await?;
        Ok(Self { head: node.head().await?, syncing })
    }

    /// Why the node is not up to date. It has to have the block `seen`, and one that is not older than
    /// `age_limit`.
    pub(super) fn lag(
        &self,
        seen: u64,
        age_limit: Option<Duration>,
        now: Timestamp,
    ) -> Option<Lag> {
        let (number, age) = (self.head.id.number, now.since(self.head.time));
        if let Some(progress) = self.syncing {
            return Some(Lag::Syncing(progress));
        }
        if number < seen {
            return Some(Lag::Behind { number, seen });
        }
        // A node that has not found the others yet does not say that it is syncing.
        if number == 0 {
            return Some(Lag::FirstBlockOnly);
        }
        age_limit.is_some_and(|limit| age > limit).then_some(Lag::Old { number, age })
    }
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syncing(SyncProgress { current: Some(current), highest: Some(highest) }) => {
                write!(f, "is syncing: block {current} of {highest}")
            }
            Self::Syncing(_) => write!(f, "is syncing"),
            Self::FirstBlockOnly => write!(f, "has only the first block of the chain"),
            Self::Behind { number, seen } => {
                let behind = seen - number;
                write!(
                    f,
                    "is at block {number}, {behind} behind block {seen}, which was seen before"
                )
            }
            Self::Old { number, age } => {
                let (minutes, seconds) = (age.as_secs() / 60, age.as_secs() % 60);
                write!(
                    f,
                    "has not had a block after block {number} for {minutes} min {seconds} s \
                     (see evm.head_age_limit)"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;

    use super::*;
    use crate::node::BlockId;

    fn state(number: u64) -> NodeState {
        let time = Timestamp::from_micros(1_000_000_000);
        let id = BlockId { number, hash: B256::ZERO };
        let head = Block { id, parent_hash: B256::ZERO, time, gas_limit: None };
        NodeState { head, syncing: None }
    }

    fn lag(state: NodeState, seen: u64) -> Option<String> {
        let now = state.head.time.plus(Duration::from_secs(301));
        state.lag(seen, Some(Duration::from_secs(301)), now).map(|lag| lag.to_string())
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
            assert_eq!(lag(NodeState { syncing, ..state(7) }, 0).as_deref(), Some(text));
        }
    }

    #[test]
    fn age_counts_only_with_a_limit() {
        let state = state(7);
        let now = state.head.time.plus(Duration::from_secs(302));
        assert_eq!(state.lag(0, None, now), None);
        let limit = Some(Duration::from_secs(301));
        let lag = state.lag(0, limit, now).unwrap().to_string();
        assert!(lag.starts_with("has not had a block after block 7 for 5 min 2 s"), "{lag}");
        // The clock of the chain may be ahead.
        assert_eq!(state.lag(0, limit, Timestamp::default()), None);
    }
}
