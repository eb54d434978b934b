//! Withdrawals, rewards, and transactions that are signed for withdrawals. Each withdrawal has one batch at a time,
//! which goes through the same queue as any other batch.
//!
//! A transaction is stored before it is sent, so no withdrawal ever has two nonces with which it could be paid. Signing
//! locks the service and thus the account.

mod close;
mod following;
mod heads;
mod hooks;
mod list;
mod moving;
mod nonce_actions;
mod nonces;
mod payment_sums;
mod pool_lanes;
mod rows;
mod schedule;
pub(crate) mod schema;
mod settle;
mod signing_store;
mod transactions;
mod withdrawal_store;

use std::collections::HashMap;

use grid_batch_core::batches::{NewBatch, TraceContext};
use grid_batch_core::operators::OperatorTarget;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_withdrawals::{Call, Withdrawal};

pub(crate) use hooks::WithdrawalHooks;

use crate::sql::{Connection, Rows, StoreError, rows::batch_id};

/// The target of an action on a withdrawal, which is its batch.
fn target_of(service_id: &ServiceId, batch_id: ItemId) -> OperatorTarget {
    OperatorTarget::Batch { service_id: service_id.clone(), batch_id, attempt: None }
}

/// The batch of a withdrawal or a call in this generation. Its bytes describe it; the transaction is signed when the
/// batch is submitted.
fn batch_of(withdrawal: &Withdrawal, generation: u32) -> NewBatch {
    let Withdrawal { pool, beneficiary, amount, call, .. } = withdrawal;
    let description = match call {
        Some(call) => format!("{} {}", call.to.as_deref().unwrap_or("new"), call.value),
        None => format!("{pool} {beneficiary} {amount}"),
    };
    NewBatch {
        service_id: withdrawal.service_id.clone(),
        batch_id: withdrawal.id.batch_id(generation),
        signer: None,
        transaction_ids: Vec::new(),
        serialized_batch: description.into_bytes(),
        declared_access: None,
        label: call.as_ref().and_then(Call::batch_label),
        client: None,
        declared_new: false,
        deadline: None,
        trace: withdrawal.trace.clone(),
    }
}

/// The traces of these batches, by batch. The batches of the next generations belong to the same traces.
fn find_traces<'a>(
    connection: &mut Connection,
    batches: impl Iterator<Item = (&'a ServiceId, &'a ItemId)> + Clone,
) -> Result<HashMap<ItemId, TraceContext>, StoreError> {
    let rows: Vec<(Vec<u8>, String)> = connection.load_row_tuples(
        "-- find_traces
         select b.batch_id, b.trace
         from {x} join batches b on b.batch_id = x.batch_id and b.service_id = x.service_id
         where b.trace is not null",
        Rows::default()
            .text("service_id", batches.clone().map(|(service_id, _)| service_id.as_str()))
            .bytes("batch_id", batches.map(|(_, id)| id.as_bytes())),
    )?;
    let read = |text: &str| text.parse().map_err(StoreError::corrupt);
    rows.into_iter().map(|(id, trace)| Ok((batch_id(&id)?, read(&trace)?))).collect()
}
