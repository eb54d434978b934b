use crate::sql::{Connection, Statement, Store, StoreError};

/// A database transaction after whose commit batches are sent. It counts as a renewal of the instance, so that an
/// earlier copy of the file is recognized by the number that the instance has stored beside it.
#[derive(Debug)]
pub(crate) struct CountedSend {
    instance: String,
    renewals: i64,
}

impl CountedSend {
    /// Counts such a transaction, as a part of it. On PostgreSQL, a loss is noticed by other means.
    pub(crate) fn count(
        store: &Store,
        connection: &mut Connection,
    ) -> Result<Option<Self>, StoreError> {
        let Some((instance, _)) = store.last_seen.get().instance else { return Ok(None) };
        if !store.dialect().is_file() {
            return Ok(None);
        }
        let statement = Statement::new(
            "-- count_send
             update instances set renewals = renewals + 1 where instance_id = ?
             returning renewals",
        )
        .text(&instance);
        let renewals: Vec<i64> = connection.load_column(&statement)?;
        Ok(renewals.into_iter().next().map(|renewals| Self { instance, renewals }))
    }

    /// Must be called after the commit of the transaction and before anything is sent.
    pub(crate) fn committed(counted: Option<Self>, store: &Store) {
        if let Some(Self { instance, renewals }) = counted {
            store.last_seen.renewed(&instance, renewals);
        }
    }
}
