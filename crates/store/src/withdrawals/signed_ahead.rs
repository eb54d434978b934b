use std::collections::BTreeMap;

use diesel::{dsl::exists, prelude::*};

use crate::sql::{
    Connection, StoreError,
    schema::{account_nonces, lanes, signed_transactions, withdrawals},
};

/// The batches of the open withdrawals whose transactions were sent, from the head of each service on, with
/// their services, and whether it is known how they end. There are few of them.
pub(super) fn load_signed_ahead(
    connection: &mut Connection,
) -> Result<Vec<(String, i64, bool)>, StoreError> {
    let mut lowest: BTreeMap<String, i64> = BTreeMap::new();
    for (service_id, nonce) in load_head_nonces(connection)? {
        let of_service = lowest.entry(service_id).or_insert(nonce);
        *of_service = nonce.min(*of_service);
    }
    let mut signed = Vec::new();
    for (service_id, nonce) in lowest {
        let of_service = load_from(connection, &service_id, nonce)?.into_iter();
        signed.extend(
            of_service
                .map(|(batch_seq, outcome)| (service_id.clone(), batch_seq, outcome.is_some())),
        );
    }
    Ok(signed)
}

/// The nonces of the withdrawals that are heads, with their services: those that are open, or of the present
/// generation. If a foreign transaction used the nonce of a head, the head gets a higher nonce than
/// those behind it.
fn load_head_nonces(connection: &mut Connection) -> Result<Vec<(String, i64)>, StoreError> {
    let query = lanes::table
        .inner_join(withdrawals::table.on(lanes::batch_seq.eq(withdrawals::batch_seq.nullable())))
        .inner_join(
            account_nonces::table
                .on(account_nonces::withdrawal_seq.eq(withdrawals::seq.nullable())),
        )
        .filter(lanes::busy)
        .filter(
            account_nonces::outcome
                .is_null()
                .or(account_nonces::generation.eq(withdrawals::generation.nullable())),
        )
        .select((account_nonces::service_id, account_nonces::nonce));
    connection.load_query("nonces_of_heads", query)
}

/// The open withdrawals of a service whose transactions with this nonce or a higher one were sent, with their
/// outcomes.
fn load_from(
    connection: &mut Connection,
    service_id: &str,
    nonce: i64,
) -> Result<Vec<(i64, Option<String>)>, StoreError> {
    let of_generation = account_nonces::withdrawal_seq
        .eq(withdrawals::seq.nullable())
        .and(account_nonces::generation.eq(withdrawals::generation.nullable()));
    let sent = signed_transactions::table
        .filter(signed_transactions::service_id.eq(account_nonces::service_id))
        .filter(signed_transactions::nonce.eq(account_nonces::nonce))
        .filter(signed_transactions::sent_at.is_not_null())
        .select(signed_transactions::position);
    let query = account_nonces::table
        .inner_join(withdrawals::table.on(of_generation))
        .filter(account_nonces::service_id.eq(service_id))
        .filter(account_nonces::nonce.ge(nonce))
        .filter(account_nonces::outcome.is_null().or(account_nonces::outcome.ne("USED_ELSEWHERE")))
        .filter(withdrawals::list_state.eq("OPEN"))
        .filter(exists(sent))
        .select((withdrawals::batch_seq, account_nonces::outcome));
    connection.load_query("withdrawals_signed_ahead", query)
}
