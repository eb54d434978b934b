use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchState, Event, Progress, transition};
use grid_batch_core::events::EventKind;

use super::state::DatabaseState;
use crate::{
    batch::RESTORED,
    events::{NewEvent, begin_generation, insert_events},
    service_history::forget_histories,
    sql::{Connection, EventSink, Statement, StoreError, query::single_count, rows::in_states},
};

/// The open batches that were put in doubt because their database was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenBatchesInDoubt {
    /// How many batches.
    pub batches: u64,
    /// In how many services.
    pub services: u64,
}

/// Epochs rise by more than the lost takeovers can have raised them, so that no change of a lost attempt
/// has the present epoch.
const EPOCH_STEP: i64 = 1_000_000;

/// Puts every open batch in doubt: heads at once, and the batches after them when they become heads.
///
/// Locks all services first, in the order in which everything else locks them.
pub(super) fn mark(
    connection: &mut Connection,
    sink: &EventSink,
    state: &DatabaseState,
    reason: &str,
    now: Timestamp,
) -> Result<OpenBatchesInDoubt, StoreError> {
    let lock = connection.dialect().locking("for update of v");
    let lock_all_services = format!(
        "-- lock_all_services
         select count(*) as number
         from (select v.service_id from services v order by v.service_id {lock}) as locked"
    );
    connection.load_column::<i64>(&Statement::new(lock_all_services))?;
    record_mark(connection, state, reason)?;
    raise_epochs(connection)?;
    forget_histories(connection)?;
    begin_generation(connection, now)?;
    let heads = put_heads_in_doubt(connection, sink, now)?;
    let waiting = count_open_batches(connection)?;
    let services = count_open_services(connection)?.min(heads);
    Ok(OpenBatchesInDoubt { batches: heads + waiting, services })
}

fn record_mark(
    connection: &mut Connection,
    state: &DatabaseState,
    reason: &str,
) -> Result<(), StoreError> {
    // The mark is later than the last one, even if the clock of this server is behind.
    let at = state.restored_at.map_or(state.now, |last| state.now.max(last.saturating_add(1)));
    let statement = Statement::new(
        "-- mark_restored
         update database_state
         set restored_at = ?, restored_reason = ?,
             restored_seq = (select coalesce(max(b.seq), 0) from batches b)
         where id = 1",
    )
    .long(at)
    .text(reason);
    connection.execute(&statement).map(drop)
}

fn raise_epochs(connection: &mut Connection) -> Result<(), StoreError> {
    let claims = "-- add_to_claim_epochs
         update service_id_claims set epoch = epoch + ?";
    let lanes = "-- add_to_lane_epochs
         update lanes set epoch = epoch + ?";
    for sql in [claims, lanes] {
        let statement = Statement::new(sql).long(EPOCH_STEP);
        connection.execute(&statement)?;
    }
    Ok(())
}

/// Applies [`Event::DatabaseRestored`] to the batches in all lanes, in one statement. Returns how many
/// there are.
///
/// A batch that is proved to be committed keeps its state, in accordance with `transition`.
fn put_heads_in_doubt(
    connection: &mut Connection,
    sink: &EventSink,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let goes_in_doubt = |state: BatchState| {
        let progress = Progress { state, ..Progress::NEW };
        transition(progress, Event::DatabaseRestored)
            .is_ok_and(|next| next.state == BatchState::InDoubt)
    };
    let states = in_states("lanes", goes_in_doubt);
    let (submitted, status) = (BatchState::InDoubt.submitted(), BatchState::InDoubt.dlt_status());
    let status = status.map_or("", |status| status.as_str());
    let statement = Statement::new(
        format!(
            "-- put_heads_in_doubt
             update lanes
             set submitted = {submitted}, dlt_status = '{status}', earlier_may_arrive = true, since = ?,
                 submitted_at = coalesce(submitted_at, ?), next_try_at = null, last_error = ?, pool_parked = false,
                 held_at = case when held_until_decision then held_at end,
                 held_reason = case when held_until_decision then held_reason end
             where busy and not commit_proven and {states}
             returning batch_seq, attempts"
        ),
    )
    .long(/* since */ now.as_micros())
    .long(/* submitted_at */ now.as_micros())
    .text(RESTORED);
    let heads: Vec<(i64, i32)> = connection.load_tuples(&statement)?;
    let event = |(batch_seq, attempts): &(i64, i32)| NewEvent {
        batch_seq: *batch_seq,
        kind: EventKind::DatabaseRestored,
        state: BatchState::InDoubt,
        attempt: attempts.unsigned_abs(),
        detail: None,
    };
    let events: Vec<NewEvent> = heads.iter().map(event).collect();
    insert_events(connection, sink, &events, now)?;
    u64::try_from(heads.len()).map_err(StoreError::corrupt)
}

/// The open batches that are in no lane.
fn count_open_batches(connection: &mut Connection) -> Result<u64, StoreError> {
    let statement = Statement::new(
        "-- count_open_batches
         select cast(coalesce((select sum(added) from services), 0)
             - coalesce((select sum(ended) from lanes), 0)
             - (select count(*) from lanes where busy) as bigint) as number",
    );
    single_count(&connection.load_column(&statement)?)
}

/// The services with a batch in a lane.
fn count_open_services(connection: &mut Connection) -> Result<u64, StoreError> {
    let statement = Statement::new(
        "-- count_open_services
         select count(distinct service_id) as number from lanes where busy",
    );
    single_count(&connection.load_column(&statement)?)
}
