use alloy_primitives::{Address, U256};
use grid_batch_withdrawals::{ClosedNonce, NonceOutcome};

use super::MinedTransaction;
use crate::{
    node::{BlockTag, NodeClient, NodeError, revert_reason},
    pool::{PoolCall, withdrawal_id},
};

/// How a withdrawal ended, according to a final transaction.
pub(crate) async fn final_result(
    mined: &MinedTransaction<'_>,
    node: &NodeClient,
    admin: Address,
    call: &PoolCall,
) -> Result<ClosedNonce, NodeError> {
    let (signed, block) = (mined.signed, mined.receipt.block.number);
    let (outcome, note) = if signed.is_filler {
        cancelled(block)
    } else if mined.receipt.succeeded {
        succeeded(block, withdrawal_id(call.pool, &mined.receipt.logs))
    } else {
        reverted(block, &reason_at(block, node, admin, call).await?)
    };
    let (outcome, transaction) = (Some(outcome), Some(mined.report()));
    Ok(ClosedNonce { nonce: signed.nonce, note, outcome, transaction })
}

fn cancelled(block: u64) -> (NonceOutcome, String) {
    let note = format!("cancelled in block {block}; the pool was not called");
    (NonceOutcome::Cancelled, note)
}

fn reverted(block: u64, reason: &str) -> (NonceOutcome, String) {
    let note = format!("the pool refused the withdrawal in block {block}: {reason}");
    (NonceOutcome::Reverted, note)
}

fn succeeded(block: u64, id: Option<U256>) -> (NonceOutcome, String) {
    let Some(id) = id else {
        let note = format!("mined in block {block}, but the pool did not emit WithdrawPollCreated");
        return (NonceOutcome::WithoutEvent, note);
    };
    let withdrawal_id = id.to_string();
    let note = format!("withdrawn in block {block} with the pool's id {withdrawal_id}");
    (NonceOutcome::Withdrawn { withdrawal_id }, note)
}

/// Why the pool refused. A receipt has no reason, so the call is repeated on the state of that block.
async fn reason_at(
    block: u64,
    node: &NodeClient,
    admin: Address,
    call: &PoolCall,
) -> Result<String, NodeError> {
    let PoolCall { pool, data } = call;
    match node.call(admin, *pool, data, BlockTag::Number(block)).await {
        Ok(_) => Ok("the reason is unknown; the same call succeeds now".to_owned()),
        Err(error) => match (revert_reason(&error), error) {
            (Some(reason), _) => Ok(reason),
            // The node has removed the state of that block.
            (None, NodeError::Rpc { .. }) => Ok("the node does not know the reason".to_owned()),
            (None, error) => Err(error),
        },
    }
}
