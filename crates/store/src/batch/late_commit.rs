use diesel::{
    QueryableByName,
    sql_types::{BigInt, Integer},
};
use grid_batch_core::{BatchState, Change, Event, EventKind, Timestamp};

use crate::{
    events::{NewEvent, insert_events},
    sql::{Connection, Dialect, EventSink, Statement, StoreError},
};

/// Stores the first report that a batch which ended as invalid was committed. Returns whether this
/// change is that report.
pub(super) fn record_commit_after_invalid(
    connection: &mut Connection,
    sink: &EventSink,
    change: &Change,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let dialect = connection.dialect();
    let is_first = connection.execute(&insert_report(dialect, change, now))? > 0;
    if is_first {
        let shown: Vec<ShownRow> = connection.load(&show_report(dialect, change))?;
        let events: Vec<NewEvent> = shown.iter().map(|row| row.event(change)).collect();
        insert_events(connection, sink, &events, now)?;
    }
    Ok(is_first)
}

fn insert_report(dialect: Dialect, change: &Change, now: Timestamp) -> Statement<'_> {
    let source = source(change);
    Statement::new(
        dialect,
        "-- insert_commit_after_invalid
         insert into commits_after_invalid (batch_seq, reported_at, source)
         select b.seq, ?, ? from batches b
         where b.batch_id = ? and b.service_id = ? and b.dlt_status = 'INVALID'
         on conflict (batch_seq) do nothing",
    )
    .long(now.as_micros())
    .text(source)
    .bytes(change.batch_id.as_bytes())
    .text(change.service_id.as_str())
}

fn source(change: &Change) -> &'static str {
    match change.event {
        Event::Status { .. } => "the ledger's status",
        _ => "evidence",
    }
}

/// Stores the report as the batch's last error, which its details show.
fn show_report(dialect: Dialect, change: &Change) -> Statement<'_> {
    Statement::new(
        dialect,
        "-- show_commit_after_invalid
         update batches as b
         set last_error = 'the batch ended as invalid, and the ledger reported later that it is committed'
         where b.batch_id = ? and b.service_id = ?
         returning seq, attempts",
    )
    .bytes(change.batch_id.as_bytes())
    .text(change.service_id.as_str())
}

#[derive(QueryableByName)]
struct ShownRow {
    #[diesel(sql_type = BigInt)]
    seq: i64,
    #[diesel(sql_type = Integer)]
    attempts: i32,
}

impl ShownRow {
    fn event(&self, change: &Change) -> NewEvent {
        NewEvent {
            batch_seq: self.seq,
            kind: EventKind::CommittedAfterInvalid,
            state: BatchState::Invalid,
            attempt: self.attempts.unsigned_abs(),
            detail: Some(source(change).to_owned()),
        }
    }
}
