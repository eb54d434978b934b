use std::collections::HashMap;

use diesel::{QueryableByName, sql_types::BigInt};
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::ClosedNonce;

use super::{
    nonce_row::{OutcomeRow, outcome_columns},
    nonces::check_outcome,
    to_stored,
};
use crate::sql::{
    Connection, Rows, Statement, Store, StoreError, groups::LOCK_LIMIT, rows::storable,
};

/// Records the notes and the final outcomes of nonces. Another outcome than a stored one is refused,
/// and then nothing is recorded.
pub(crate) fn close_nonces(
    store: &Store,
    service_id: &ServiceId,
    closed: &[ClosedNonce],
) -> Result<(), StoreError> {
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        let mut stored = lock_nonces(connection, service_id, closed)?;
        let mut open = Vec::with_capacity(closed.len());
        for closed in closed {
            let ClosedNonce { nonce, outcome, .. } = closed;
            let stored = stored.remove(&to_stored("nonce", *nonce)?);
            if check_outcome(service_id, *nonce, stored, outcome.as_ref())? {
                open.push(closed);
            }
        }
        if open.is_empty() {
            return Ok(());
        }
        write_closed(connection, service_id, &open)
    })
}

fn lock_nonces(
    connection: &mut Connection,
    service_id: &ServiceId,
    closed: &[ClosedNonce],
) -> Result<HashMap<i64, OutcomeRow>, StoreError> {
    let numbers = closed.iter().map(|it| to_stored("nonce", it.nonce));
    let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
    let dialect = connection.dialect();
    let lock = dialect.locking("for update of n");
    let statement = Statement::new(
        dialect,
        format!(
            "-- lock_nonces
             select n.nonce, n.outcome, n.pool_withdrawal_id
             from {{x}} join account_nonces n
                 on n.service_id = x.service_id and n.nonce = x.nonce
             order by n.service_id, n.nonce {lock}"
        ),
    )
    .rows(
        Rows::default()
            .text("service_id", closed.iter().map(|_| service_id.as_str()))
            .long("nonce", numbers),
    );
    let rows: Vec<LockedNonceRow> = connection.load(&statement)?;
    Ok(rows.into_iter().map(|row| (row.nonce, row.outcome)).collect())
}

fn write_closed(
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
    let (outcomes, ids): (Vec<_>, Vec<_>) = closed.iter().map(columns).unzip();
    let statement = Statement::new(
        connection.dialect(),
        "-- close_nonces
         update account_nonces as n
         set outcome = x.outcome, pool_withdrawal_id = x.pool_withdrawal_id, note = x.note
         from {x} where n.service_id = x.service_id and n.nonce = x.nonce",
    )
    .rows(
        Rows::default()
            .text("service_id", closed.iter().map(|_| service_id.as_str()))
            .long("nonce", numbers)
            .optional_text("outcome", outcomes)
            .optional_text("pool_withdrawal_id", ids.iter().map(Option::as_deref))
            .optional_text("note", notes.iter().map(|note| Some(&**note))),
    );
    connection.execute(&statement).map(drop)
}

#[derive(QueryableByName)]
struct LockedNonceRow {
    #[diesel(sql_type = BigInt)]
    nonce: i64,
    #[diesel(embed)]
    outcome: OutcomeRow,
}
