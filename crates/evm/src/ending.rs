use alloy_primitives::{Address, U256};
use grid_batch_withdrawals::NonceOutcome;

use crate::{
    node::{BlockTag, Node, NodeError},
    pool::withdrawal_id,
    proposal::Proposal,
    revert::reverted,
    sighting::Mined,
};

/// How a withdrawal has ended, by a transaction that is final.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// `None`: the pool did not say, and a person is to find out.
    pub(crate) outcome: Option<NonceOutcome>,
    /// The same for people.
    pub(crate) note: String,
}

impl Ending {
    pub(crate) async fn of(
        mined: &Mined<'_>,
        node: &Node,
        admin: Address,
        proposal: &Proposal,
    ) -> Result<Self, NodeError> {
        let block = mined.receipt.block.number;
        if mined.transaction.signed.is_filler {
            return Ok(Self::cancelled(block));
        }
        if !mined.receipt.status {
            return Ok(Self::reverted(block, &reason_at(block, node, admin, proposal).await?));
        }
        Ok(Self::mined(block, withdrawal_id(proposal.pool, &mined.receipt.logs)))
    }

    fn cancelled(block: u64) -> Self {
        let note = format!("cancelled in block {block}, before the pool was asked");
        Self { outcome: Some(NonceOutcome::Cancelled), note }
    }

    fn reverted(block: u64, reason: &str) -> Self {
        let note = format!("the pool refused the withdrawal in block {block}: {reason}");
        Self { outcome: Some(NonceOutcome::Reverted), note }
    }

    fn mined(block: u64, id: Option<U256>) -> Self {
        let Some(id) = id else {
            let note =
                format!("mined in block {block}, but the pool did not say WithdrawPollCreated");
            return Self { outcome: None, note };
        };
        let withdrawal_id = id.to_string();
        let note = format!("withdrawn in block {block}, as {withdrawal_id}");
        Self { outcome: Some(NonceOutcome::Withdrawn { withdrawal_id }), note }
    }
}

/// Why the pool refused, as it says when it is asked again in that block. A receipt does not tell.
async fn reason_at(
    block: u64,
    node: &Node,
    admin: Address,
    proposal: &Proposal,
) -> Result<String, NodeError> {
    let Proposal { pool, data } = proposal;
    match node.call(admin, *pool, data, BlockTag::Number(block)).await {
        Ok(_) => Ok("asked again, it does not refuse".to_owned()),
        Err(error) => match (reverted(&error), error) {
            (Some(reason), _) => Ok(reason),
            // A node that has forgotten how things were in that block.
            (None, NodeError::Rpc { .. }) => Ok("the node does not tell why".to_owned()),
            (None, error) => Err(error),
        },
    }
}
