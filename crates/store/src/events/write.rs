use grid_batch_core::Timestamp;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::EventKind;

use super::rows::{code, encode_seqs};
use crate::sql::{
    Connection, EventSink, Rows, Statement, StoreError,
    rows::{attempts, storable},
};

/// An event to be written.
#[derive(Debug)]
pub(crate) struct NewEvent {
    pub(crate) batch_seq: i64,
    pub(crate) kind: EventKind,
    pub(crate) state: BatchState,
    pub(crate) attempt: u32,
    pub(crate) detail: Option<String>,
}

/// The maximum number of events in a group, so that a reader can hold the batches of one.
const LONGEST_GROUP: usize = 1_000;

/// The maximum length of a detail, in bytes. The whole text is stored with the batch.
const LONGEST_DETAIL: usize = 512;

/// Writes events in the transaction of the change, while it holds its locks, so that the numbers of groups have the
/// order of the changes of a service.
pub(crate) fn insert_events(
    connection: &mut Connection,
    sink: &EventSink,
    events: &[NewEvent],
    at: Timestamp,
) -> Result<(), StoreError> {
    if !sink.is_on() || events.is_empty() {
        return Ok(());
    }
    let instance = sink.instance();
    for group in events.chunks(LONGEST_GROUP) {
        insert_group(connection, instance.as_deref().unwrap_or_default(), group, at)?;
    }
    sink.written(events.len());
    Ok(())
}

const GROUP_COLUMNS: &str = "batch_seq, group_seq, at, position, attempt, kind, state, detail";

fn insert_group(
    connection: &mut Connection,
    instance: &str,
    group: &[NewEvent],
    at: Timestamp,
) -> Result<(), StoreError> {
    let dialect = connection.dialect();
    let seqs = encode_seqs(group.iter().map(|event| event.batch_seq));
    let text = match dialect.transaction_id() {
        Some(transaction) => format!(
            "-- insert_events
             with g as (
                 insert into event_groups (xid, at, instance, batch_seqs)
                 values ({transaction}, ?, nullif(?, ''), ?)
                 returning seq)
             insert into batch_events ({GROUP_COLUMNS})
             select x.batch_seq, (select g.seq from g), x.at, x.position, x.attempt, x.kind,
                 x.state, x.detail
             from {{x}}"
        ),
        // SQLite does not support `insert` in a `with` clause.
        None => {
            let insert = Statement::new(
                "-- insert_event_group
                 insert into event_groups (at, instance, batch_seqs) values (?, nullif(?, ''), ?)",
            );
            let insert = insert.long(at.as_micros()).text(instance).bytes(&seqs);
            connection.execute(&insert)?;
            format!(
                "-- insert_events
                 insert into batch_events ({GROUP_COLUMNS})
                 select x.batch_seq, (select max(g.seq) from event_groups g), x.at, x.position,
                     x.attempt, x.kind, x.state, x.detail
                 from {{x}}"
            )
        }
    };
    let mut statement = Statement::new(text);
    if dialect.transaction_id().is_some() {
        statement = statement.long(at.as_micros()).text(instance).bytes(&seqs);
    }
    let details: Vec<_> =
        group.iter().map(|event| event.detail.as_deref().map(storable_detail)).collect();
    let statement = statement.rows(
        Rows::default()
            .long("batch_seq", group.iter().map(|event| event.batch_seq))
            .long("at", group.iter().map(|_| at.as_micros()))
            .int("position", (0..).zip(group).map(|(position, _)| position))
            .int("attempt", group.iter().map(|event| attempts(event.attempt)))
            .int("kind", group.iter().map(|event| code(&EventKind::ALL, event.kind)))
            .int("state", group.iter().map(|event| code(&BatchState::ALL, event.state)))
            .optional_text("detail", details.iter().map(Option::as_deref))
            .in_chunks(),
    );
    connection.execute(&statement).map(drop)
}

fn storable_detail(text: &str) -> String {
    storable(&text[..text.floor_char_boundary(LONGEST_DETAIL)]).into_owned()
}
