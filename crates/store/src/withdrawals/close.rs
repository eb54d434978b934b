//! The final outcomes of nonces.

use std::collections::HashMap;

use diesel::QueryableByName;
use grid_batch_core::ServiceId;
use grid_batch_core::batches::DltStatus;
use grid_batch_withdrawals::{ClosedNonce, NonceOutcome};

use super::rows::{OutcomeRow, outcome_columns, to_json, to_stored};
use crate::sql::{Connection, Rows, StoreError, error::SigningError, result_row, rows::storable};

/// The outcome of a nonce, and whether its withdrawal was reported as failed.
type LockedNonce = (OutcomeRow, bool);

pub(super) fn lock_nonces(
    connection: &mut Connection,
    service_id: &ServiceId,
    closed: &[ClosedNonce],
) -> Result<HashMap<i64, LockedNonce>, StoreError> {
    let numbers = closed.iter().map(|it| to_stored("nonce", it.nonce));
    let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
    let lock = connection.dialect().locking("for update of n");
    let rows: Vec<LockedNonceRow> = connection.load_rows(
        format!(
            "-- lock_nonces
             select n.nonce, n.outcome, n.pool_withdrawal_id, w.list_state
             from {{x}} join account_nonces n
                 on n.service_id = x.service_id and n.nonce = x.nonce
             left join withdrawals w on w.seq = n.withdrawal_seq
             order by n.service_id, n.nonce {lock}"
        ),
        Rows::default()
            .text("service_id", closed.iter().map(|_| service_id.as_str()))
            .long("nonce", numbers),
    )?;
    let locked = |LockedNonceRow { nonce, outcome, list_state }| {
        (nonce, (outcome, list_state.as_deref() == Some(DltStatus::Invalid.as_str())))
    };
    Ok(rows.into_iter().map(locked).collect())
}

pub(super) fn write_closed(
    connection: &mut Connection,
    service_id: &ServiceId,
    closed: &[&ClosedNonce],
) -> Result<(), StoreError> {
    let numbers = closed.iter().map(|it| to_stored("nonce", it.nonce));
    let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
    let notes: Vec<_> = closed.iter().map(|it| storable(&it.note)).collect();
    let columns = |it: &&ClosedNonce| -> (Option<&'static str>, Option<String>) {
        let columns = it.outcome.as_ref().map(outcome_columns);
        let id = columns.and_then(|(_, id)| id).map(str::to_owned);
        (columns.map(|(outcome, _)| outcome), id)
    };
    let transactions = || closed.iter().map(|it| it.transaction.as_ref());
    let logs = transactions().map(|it| it.map(|it| &it.logs).filter(|logs| !logs.is_empty()));
    let logs: Vec<Option<String>> =
        logs.map(|logs| logs.map(to_json).transpose()).collect::<Result<_, _>>()?;
    let (outcomes, ids): (Vec<_>, Vec<_>) = closed.iter().map(columns).unzip();
    connection.execute_rows(
        "-- close_nonces
         update account_nonces as n
         set outcome = x.outcome, pool_withdrawal_id = x.pool_withdrawal_id,
             note = coalesce(nullif(x.note, ''), n.note),
             mined_hash = x.mined_hash, block_number = x.block_number, gas_used = x.gas_used,
             gas_price = x.gas_price, logs = x.logs
         from {x} where n.service_id = x.service_id and n.nonce = x.nonce",
        Rows::default()
            .text("service_id", closed.iter().map(|_| service_id.as_str()))
            .long("nonce", numbers)
            .optional_text("outcome", outcomes)
            .optional_text("pool_withdrawal_id", ids.iter().map(Option::as_deref))
            .optional_text("note", notes.iter().map(|note| Some(&**note)))
            .optional_bytes("mined_hash", transactions().map(|it| it.map(|it| &it.hash[..])))
            .optional_long("block_number", transactions().map(|it| stored(it?.block)))
            .optional_long("gas_used", transactions().map(|it| stored(it?.gas_used?)))
            .optional_long("gas_price", transactions().map(|it| stored(it?.gas_price?)))
            .optional_text("logs", logs.iter().map(Option::as_deref)),
    )
}

/// A number of a final transaction; `None` if it is too large to be stored.
fn stored(number: impl TryInto<i64>) -> Option<i64> {
    number.try_into().ok()
}

/// Corrects withdrawals that an operator decided as not made, if they were made with these nonces.
pub(super) fn correct_ends(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonces: &[i64],
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- correct_ends
         update withdrawals as w set list_state = 'COMMITTED'
         from {x} join account_nonces n on n.service_id = x.service_id and n.nonce = x.nonce
         where w.seq = n.withdrawal_seq and w.list_state = 'INVALID'",
        Rows::default()
            .text("service_id", nonces.iter().map(|_| service_id.as_str()))
            .long("nonce", nonces.iter().copied()),
    )
}

result_row! {
    struct LockedNonceRow {
        nonce: i64,
        list_state: Option<String>,
        #[diesel(embed)]
        outcome: OutcomeRow,
    }
}

/// Whether the nonce is still open. Fails if the nonce is not stored or has a different outcome.
pub(super) fn check_outcome(
    service_id: &ServiceId,
    nonce: u64,
    stored: Option<OutcomeRow>,
    given: Option<&NonceOutcome>,
) -> Result<bool, StoreError> {
    let service = || service_id.clone();
    let Some(row) = stored else {
        return Err(SigningError::UnassignedNonce { service_id: service(), nonce }.into());
    };
    match (row.read()?, given) {
        (None, _) => Ok(true),
        (Some(stored), Some(given)) if stored != *given => {
            let (service_id, given) = (service(), given.clone());
            Err(SigningError::OutcomeConflict { service_id, nonce, stored, given }.into())
        }
        (Some(_), _) => Ok(false),
    }
}
