use alloy_primitives::{Address, U256};
use grid_batch_withdrawals::{Call, ClosedNonce, EventLog, NonceOutcome};

use super::MinedTransaction;
use crate::{
    action::Action,
    node::{BlockTag, NodeClient, NodeError, TransactionReceipt, call_failure, revert_reason},
    pool::withdrawal_id,
};

/// About how many characters of the events of a call are stored.
const MOST_LOG_BYTES: usize = 64 * 1024;

/// How a withdrawal or a call ended, according to a final transaction. Without a call, it is a withdrawal.
pub(crate) async fn final_result(
    mined: &MinedTransaction<'_>,
    node: &NodeClient,
    admin: Address,
    action: &Action,
    call: Option<&Call>,
) -> Result<ClosedNonce, NodeError> {
    let (signed, receipt) = (mined.signed, &mined.receipt);
    let block = receipt.block.number;
    let mut transaction = mined.report();
    let (outcome, note) = match (call, action.to.to()) {
        _ if signed.is_filler => cancelled(block, call.is_some()),
        (Some(_), to) if receipt.succeeded => {
            transaction.logs = logs(receipt);
            let contract = to.is_none().then(|| admin.create(signed.nonce));
            executed(block, contract, receipt.logs.len() - transaction.logs.len())
        }
        (None, Some(pool)) if receipt.succeeded => {
            succeeded(block, withdrawal_id(*pool, &receipt.logs))
        }
        _ => reverted(block, &reason_at(block, node, admin, action, call).await?, call.is_some()),
    };
    let (outcome, transaction) = (Some(outcome), Some(transaction));
    Ok(ClosedNonce { nonce: signed.nonce, note, outcome, transaction })
}

fn cancelled(block: u64, is_call: bool) -> (NonceOutcome, String) {
    let nothing = if is_call { "nothing was executed" } else { "the pool was not called" };
    (NonceOutcome::Cancelled, format!("cancelled in block {block}; {nothing}"))
}

fn reverted(block: u64, reason: &str, is_call: bool) -> (NonceOutcome, String) {
    let what = if is_call { "the transaction failed" } else { "the pool refused the withdrawal" };
    (NonceOutcome::Reverted, format!("{what} in block {block}: {reason}"))
}

fn executed(block: u64, contract: Option<Address>, omitted: usize) -> (NonceOutcome, String) {
    let contract = contract.map(|address| address.to_string());
    let note = match omitted {
        0 => format!("executed in block {block}"),
        _ => {
            format!("executed in block {block}; its last {omitted} events are not stored")
        }
    };
    (NonceOutcome::Executed { contract }, note)
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

/// The first events, as many as are stored.
fn logs(receipt: &TransactionReceipt) -> Vec<EventLog> {
    let mut bytes = 0;
    let logs = receipt.logs.iter().map(|log| EventLog {
        address: log.address.to_string(),
        topics: log.topics().iter().map(ToString::to_string).collect(),
        data: log.data.data.to_string(),
    });
    let fits = |log: &EventLog| {
        bytes += log.data.len() + 100 * (1 + log.topics.len());
        bytes <= MOST_LOG_BYTES
    };
    logs.take_while(fits).collect()
}

/// Why it failed. A receipt has no reason, so the action is repeated on the state of that block.
async fn reason_at(
    block: u64,
    node: &NodeClient,
    admin: Address,
    action: &Action,
    call: Option<&Call>,
) -> Result<String, NodeError> {
    match node.call(admin, action, BlockTag::Number(block)).await {
        Ok(_) => Ok("the reason is unknown; the same call succeeds now".to_owned()),
        Err(error) => match (revert_reason(&error), call) {
            (Some(_), Some(call)) => Ok(call_failure(&error, &call.abi)),
            (Some(reason), None) => Ok(reason),
            // The node has removed the state of that block.
            (None, _) if matches!(error, NodeError::Rpc { .. }) => {
                Ok("the node does not know the reason".to_owned())
            }
            (None, _) => Err(error),
        },
    }
}
