use grid_batch_core::{Hex, ServiceId};

use super::error::{SigningError, to_stored};
use crate::{Store, StoreError, rows::presentable, statement::Rows};

impl Store {
    /// Stores that a transaction was sent, with the node's error if there was one.
    pub(super) fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> Result<(), StoreError> {
        let error = error.map(presentable);
        let statement = self
            .statement(
                "-- mark_sent
                 update signed_transactions as k
                 set sent_at = x.sent_at, last_error = x.last_error
                 from {x} where k.hash = x.hash",
            )
            .rows(
                Rows::default()
                    .bytes("hash", [&hash[..]])
                    .long("sent_at", [self.now().as_micros()])
                    .optional_text("last_error", [error.as_deref()]),
            );
        match self.pools.write()?.execute(&statement)? {
            0 => Err(SigningError::UnknownTransaction { hash: Hex(hash).to_string() }.into()),
            _ => Ok(()),
        }
    }

    /// Stores a note about an open nonce. An equal note is not written again.
    pub(super) fn note(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        note: Option<&str>,
    ) -> Result<(), StoreError> {
        let note = note.map(presentable);
        let statement = self
            .statement(
                "-- note
                 update account_nonces as n set note = x.note from {x}
                 where n.service_id = x.service_id and n.nonce = x.nonce
                     and n.spent is null and n.note is distinct from x.note",
            )
            .rows(
                Rows::default()
                    .text("service_id", [service_id.as_str()])
                    .long("nonce", [to_stored("nonce", nonce)?])
                    .optional_text("note", [note.as_deref()]),
            );
        self.pools.write()?.execute(&statement).map(drop)
    }

    /// Stores the hash of the foreign transaction that uses an open nonce.
    pub(super) fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: &[u8; 32],
    ) -> Result<(), StoreError> {
        let statement = self
            .statement(
                "-- record_foreign_use
                 update account_nonces as n set used_by = x.used_by from {x}
                 where n.service_id = x.service_id and n.nonce = x.nonce
                     and n.spent is null and n.used_by is distinct from x.used_by",
            )
            .rows(
                Rows::default()
                    .text("service_id", [service_id.as_str()])
                    .long("nonce", [to_stored("nonce", nonce)?])
                    .bytes("used_by", [&hash[..]]),
            );
        self.pools.write()?.execute(&statement).map(drop)
    }
}
