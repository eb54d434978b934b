use std::collections::HashMap;

use grid_batch_withdrawals::{FollowingPayments, NewSignedTransaction, Payment, SignedTransaction};

use super::{
    following::{StoredFollowing, load_following},
    payment::find_payment,
    sign_following::lock_head,
    transactions::insert_all_stored,
};
use crate::{
    batch::lock_services,
    sql::{Store, StoreError, groups::LOCK_LIMIT},
};

/// Stores further transactions with open nonces of the withdrawal that is under way and of those behind
/// it, unless these have changed since they were read.
pub(crate) fn replace_following(
    store: &Store,
    following: &FollowingPayments,
    signed: Vec<NewSignedTransaction>,
) -> Result<bool, StoreError> {
    let service_id = &following.head.service_id;
    let now = store.now();
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        lock_services(connection, [service_id])?;
        let Some(lane) = lock_head(connection, &following.head)? else { return Ok(false) };
        let head = find_payment(connection, service_id, &following.head.batch_id)?;
        let count = following.payments.len();
        let behind = load_following(connection, service_id, &lane, count, now)?;
        let behind = behind.payments.into_iter().map(|stored| StoredFollowing::split(stored).1);
        let behind = behind.filter(|it| !it.is_held).map(|it| it.payment);
        let payments = head.map(|head| head.payment).into_iter().chain(behind);
        let positions: HashMap<u64, usize> = payments.filter_map(next_position).collect();
        let placed: Option<Vec<(SignedTransaction, usize)>> = signed
            .into_iter()
            .map(|signed| {
                let position = *positions.get(&signed.nonce)?;
                Some((SignedTransaction::new(signed, now), position))
            })
            .collect();
        let Some(placed) = placed else { return Ok(false) };
        insert_all_stored(connection, service_id, &placed)?;
        Ok(true)
    })
}

/// The nonce of a payment, if it is open, and the position of its next transaction.
fn next_position(payment: Payment) -> Option<(u64, usize)> {
    let open = payment.nonce.filter(|nonce| nonce.outcome.is_none())?;
    (!payment.cancel_requested).then_some((open.nonce, open.transactions.len()))
}
