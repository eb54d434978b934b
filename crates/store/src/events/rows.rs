use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Integer, Nullable, Text},
};
use grid_batch_core::{BatchEvent, BatchState, EventId, EventKind, EventWithdrawal, Timestamp};

use crate::sql::{
    StoreError,
    rows::{batch_id, service_id},
};

/// The columns of a [`GroupRow`], from `event_groups g`.
pub(super) const GROUP_COLUMNS: &str = "g.seq, g.xid, g.instance, g.batch_seqs";

/// The events of one commit.
#[derive(Debug, Clone, QueryableByName)]
pub(super) struct GroupRow {
    #[diesel(sql_type = BigInt)]
    pub(super) seq: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(super) xid: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) instance: Option<String>,
    #[diesel(sql_type = Binary)]
    pub(super) batch_seqs: Vec<u8>,
}

/// The columns of an [`EventRow`], from `batch_events e` and `batches b`.
pub(super) const EVENT_COLUMNS: &str =
    "e.group_seq, e.at, e.position, e.attempt, e.kind, e.state, e.detail,
    b.service_id, b.batch_id";

#[derive(Debug, QueryableByName)]
pub(super) struct EventRow {
    #[diesel(sql_type = BigInt)]
    pub(super) group_seq: i64,
    #[diesel(sql_type = BigInt)]
    at: i64,
    #[diesel(sql_type = Integer)]
    pub(super) position: i32,
    #[diesel(sql_type = Integer)]
    attempt: i32,
    #[diesel(sql_type = Integer)]
    kind: i32,
    #[diesel(sql_type = Integer)]
    state: i32,
    #[diesel(sql_type = Nullable<Text>)]
    detail: Option<String>,
    #[diesel(sql_type = Text)]
    pub(super) service_id: String,
    #[diesel(sql_type = Binary)]
    pub(super) batch_id: Vec<u8>,
}

impl EventRow {
    pub(super) fn into_event(
        self,
        instance: Option<String>,
        withdrawal: Option<EventWithdrawal>,
    ) -> Result<BatchEvent, StoreError> {
        Ok(BatchEvent {
            id: EventId { group: self.group_seq, position: self.position },
            service_id: service_id(&self.service_id)?,
            batch_id: batch_id(&self.batch_id)?,
            kind: of_code(&EventKind::ALL, self.kind)?,
            state: of_code(&BatchState::ALL, self.state)?,
            attempt: u32::try_from(self.attempt).map_err(StoreError::corrupt)?,
            detail: self.detail,
            at: Timestamp::from_micros(self.at),
            instance,
            withdrawal,
        })
    }
}

fn of_code<T: Copy>(all: &[T], code: i32) -> Result<T, StoreError> {
    let value = usize::try_from(code).ok().and_then(|index| all.get(index));
    value.copied().ok_or_else(|| StoreError::corrupt(format!("an event with the code {code}")))
}
