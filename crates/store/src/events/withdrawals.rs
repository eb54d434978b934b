use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{Binary, Nullable, Text},
};
use grid_batch_core::{EventWithdrawal, Hex, ItemId};
use grid_batch_withdrawals::WithdrawalId;

use crate::sql::{Connection, Rows, Statement, StoreError};

/// The withdrawals that these batches try, by the ids of the batches. Reads nothing if no batch is a withdrawal's.
pub(super) fn load_withdrawals<'a>(
    connection: &mut Connection,
    batch_ids: impl Iterator<Item = &'a [u8]>,
) -> Result<HashMap<Vec<u8>, EventWithdrawal>, StoreError> {
    let mut named: Vec<(&[u8], WithdrawalId, u32)> = batch_ids.filter_map(read_id).collect();
    if named.is_empty() {
        return Ok(HashMap::new());
    }
    named.sort_unstable();
    named.dedup();
    let statement = Statement::new(
        connection.dialect(),
        "-- withdrawals_of_events
         select x.batch_id, w.withdrawal_id, w.pool, w.amount, (
             select (
                 select k.hash from signed_transactions k
                 where k.service_id = n.service_id and k.nonce = n.nonce and not k.is_filler
                 order by k.max_fee desc, k.position desc limit 1)
             from account_nonces n
             where n.withdrawal_seq = w.seq and coalesce(n.outcome, '') <> 'USED_ELSEWHERE'
                 and (n.generation = x.generation
                     or (n.generation < x.generation and n.outcome is null))
             order by n.nonce desc limit 1) as hash
         from {x} join withdrawals w on w.withdrawal_id = x.withdrawal_id",
    )
    .rows(
        Rows::default()
            .bytes("batch_id", named.iter().map(|(batch_id, ..)| *batch_id))
            .bytes("withdrawal_id", named.iter().map(|(_, id, _)| &id.as_bytes()[..]))
            .long("generation", named.iter().map(|(.., generation)| i64::from(*generation)))
            .in_chunks(),
    );
    let rows: Vec<WithdrawalRow> = connection.load(&statement)?;
    rows.into_iter().map(WithdrawalRow::read).collect()
}

fn read_id(batch_id: &[u8]) -> Option<(&[u8], WithdrawalId, u32)> {
    let bytes = batch_id.try_into().ok()?;
    let (id, generation) = WithdrawalId::of_batch(&ItemId::from_bytes(bytes))?;
    Some((batch_id, id, generation))
}

#[derive(QueryableByName)]
struct WithdrawalRow {
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
    #[diesel(sql_type = Binary)]
    withdrawal_id: Vec<u8>,
    #[diesel(sql_type = Text)]
    pool: String,
    #[diesel(sql_type = Text)]
    amount: String,
    #[diesel(sql_type = Nullable<Binary>)]
    hash: Option<Vec<u8>>,
}

impl WithdrawalRow {
    fn read(self) -> Result<(Vec<u8>, EventWithdrawal), StoreError> {
        let Self { batch_id, withdrawal_id, pool, amount, hash } = self;
        let id = WithdrawalId::try_from(&withdrawal_id[..]).map_err(StoreError::corrupt)?;
        let transaction_hash = hash.map(|hash| format!("0x{}", Hex(&hash)));
        let withdrawal = EventWithdrawal { id: id.to_string(), pool, amount, transaction_hash };
        Ok((batch_id, withdrawal))
    }
}
