use diesel::{
    QueryableByName,
    sql_types::{Nullable, Text},
};
use grid_batch_withdrawals::{WithdrawalDetails, WithdrawalId};

use super::{
    nonce_row::{NONCE_COLUMNS, NonceRow, WITH_NONCE},
    rows::{WITHDRAWAL_COLUMNS, WithdrawalRow},
    transactions::{AccountNonce, signed_transactions},
};
use crate::sql::{
    Connection, Statement, Store, StoreError,
    rows::{BATCH_COLUMNS, BatchRow, WITH_LANE},
};

/// Ends with the tables, so that conditions can follow.
pub(super) fn stories(name: &str) -> String {
    format!(
        "{name}
         select {WITHDRAWAL_COLUMNS}, {NONCE_COLUMNS}, {BATCH_COLUMNS},
             (select why.error_message from transaction_receipts why
              where why.batch_seq = b.seq and why.position = 0) as fail_reason
         from withdrawals w
         join batches b on b.seq = w.batch_seq
         {WITH_LANE}
         {WITH_NONCE}"
    )
}

impl Store {
    /// All that is known of a withdrawal.
    pub fn withdrawal(&self, id: &WithdrawalId) -> Result<Option<WithdrawalDetails>, StoreError> {
        self.pools.read()?.snapshot(|connection| {
            let Some(mut story) = self.find_withdrawal(connection, id)? else { return Ok(None) };
            story.ahead = Some(self.ahead(connection, &story.batch)?);
            Ok(Some(story))
        })
    }

    pub(super) fn find_withdrawal(
        &self,
        connection: &mut Connection,
        id: &WithdrawalId,
    ) -> Result<Option<WithdrawalDetails>, StoreError> {
        let statement = self
            .statement(stories("-- withdrawal"))
            .and(" where w.withdrawal_id = ?")
            .bytes(id.as_bytes());
        Ok(self.read_stories(connection, &statement)?.into_iter().next())
    }

    pub(super) fn read_stories(
        &self,
        connection: &mut Connection,
        statement: &Statement<'_>,
    ) -> Result<Vec<WithdrawalDetails>, StoreError> {
        let rows: Vec<StoryRow> = connection.load(statement)?;
        let nonces: Vec<AccountNonce> = rows.iter().filter_map(|row| row.nonce.key()).collect();
        let mut signed = signed_transactions(connection, &nonces)?;
        rows.into_iter()
            .map(|row| {
                let StoryRow { withdrawal, nonce, batch, fail_reason } = row;
                Ok(WithdrawalDetails {
                    created_at: withdrawal.created_at(),
                    generation: withdrawal.generation()?,
                    cancelled_at: withdrawal.cancelled_at(),
                    ahead: None,
                    nonce: nonce.into_nonce(&mut signed)?,
                    withdrawal: withdrawal.into_withdrawal()?,
                    batch: batch.into_batch()?,
                    fail_reason,
                })
            })
            .collect()
    }
}

#[derive(QueryableByName)]
struct StoryRow {
    #[diesel(embed)]
    withdrawal: WithdrawalRow,
    #[diesel(embed)]
    nonce: NonceRow,
    #[diesel(embed)]
    batch: BatchRow,
    #[diesel(sql_type = Nullable<Text>)]
    fail_reason: Option<String>,
}
