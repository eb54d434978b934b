use grid_batch_withdrawals::{
    BatchAttempt, FollowingPayments, NewSignedTransaction, SignedTransaction,
};

use super::{
    following::{HeadRow, StoredFollowing, find_head, load_following},
    nonces::{NewNonce, highest_nonce, insert_nonces},
    transactions::insert_all_stored,
    unsettled::has_undecided_nonce,
};
use crate::{
    batch::lock_services,
    restored::CountedSend,
    sql::{Connection, Store, StoreError, groups::LOCK_LIMIT},
};

/// Assigns the next nonces to the first unsigned of the following withdrawals, and stores these
/// transactions, unless something has changed since they were read.
///
/// The withdrawals are read again under the lock of the service, so that the order of nonces is that of
/// the queue and no withdrawal gets a second nonce.
pub(crate) fn sign_following(
    store: &Store,
    following: &FollowingPayments,
    signed: Vec<NewSignedTransaction>,
) -> Result<bool, StoreError> {
    let service_id = &following.head.service_id;
    let now = store.now();
    let mut counted = None;
    let is_stored = store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        lock_services(connection, [service_id])?;
        let Some(head) = lock_head(connection, &following.head)? else { return Ok(false) };
        let next = highest_nonce(connection, service_id)?.map_or(0, |highest| highest + 1);
        if next != following.next_nonce || has_undecided_nonce(connection, service_id)? {
            return Ok(false);
        }
        let count = following.payments.len();
        let present = load_following(connection, service_id, &head, count, now)?;
        let (seqs, payments): (Vec<i64>, Vec<_>) =
            present.payments.into_iter().map(StoredFollowing::split).unzip();
        let present = FollowingPayments { payments, ..following.clone() };
        if !is_for_first_unsigned(following, &present, &signed) {
            return Ok(false);
        }
        let nonces = nonces_with_owners(&present, &seqs, &signed);
        insert_nonces(connection, service_id, &nonces, now)?;
        let signed: Vec<(SignedTransaction, usize)> =
            signed.into_iter().map(|signed| (SignedTransaction::new(signed, now), 0)).collect();
        insert_all_stored(connection, service_id, &signed)?;
        counted = CountedSend::count(store, connection)?;
        Ok::<_, StoreError>(true)
    })?;
    CountedSend::committed(counted, store);
    Ok(is_stored)
}

/// The nonce of each transaction, with the withdrawal that gets it.
fn nonces_with_owners(
    present: &FollowingPayments,
    seqs: &[i64],
    signed: &[NewSignedTransaction],
) -> Vec<NewNonce> {
    let unsigned: Vec<_> = present.unsigned().take(signed.len()).collect();
    let payments = present.payments.iter().zip(seqs);
    payments
        .filter(|(following, _)| unsigned.iter().any(|it| it.batch_id == following.batch_id))
        .zip(signed)
        .map(|((following, seq), signed)| NewNonce {
            nonce: signed.nonce,
            owner: Some((*seq, following.payment.generation)),
        })
        .collect()
}

/// Locks the lane of the withdrawal that is under way, if it is in the same attempt and epoch.
pub(super) fn lock_head(
    connection: &mut Connection,
    head: &BatchAttempt,
) -> Result<Option<HeadRow>, StoreError> {
    let lock = connection.dialect().locking("for update of s");
    let found = find_head(connection, &head.service_id, &head.batch_id, lock)?;
    let Some(found) = found else { return Ok(None) };
    let is_same = found.is_under_way && found.attempt_id()? == head.attempt_id;
    Ok(is_same.then_some(found))
}

/// Whether the transactions have consecutive nonces from the next one on, and the withdrawals that they
/// were signed for are still the first that may be signed.
fn is_for_first_unsigned(
    read: &FollowingPayments,
    present: &FollowingPayments,
    signed: &[NewSignedTransaction],
) -> bool {
    let has_next_nonces = (read.next_nonce..).zip(signed).all(|(nonce, it)| it.nonce == nonce);
    let ids = |payments: &FollowingPayments| -> Vec<_> {
        payments.unsigned().take(signed.len()).map(|following| following.batch_id).collect()
    };
    let (before, now) = (ids(read), ids(present));
    has_next_nonces && !signed.is_empty() && before.len() == signed.len() && before == now
}
