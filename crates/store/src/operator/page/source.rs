use diesel::{dsl::min, prelude::*};
use grid_batch_core::{BatchLabel, BatchSelection, BatchState, ServiceId, Timestamp};

use super::{
    super::{ahead::load_head_time, list_waiting::oldest_waiting},
    seek::{end_number, first_number},
};
use crate::sql::{
    Connection, StoreError,
    schema::{lanes, waiting_batches},
};

/// The index that leads to the batches.
pub(super) enum Source {
    /// Those with a label.
    Label(BatchLabel),
    /// Those that are held.
    Held,
    /// Those in lanes: next or under way.
    Lanes,
    /// Those that are invalid: each has a receipt at position 0.
    Invalid,
    /// Those of a service, stored from one time to before another.
    Service(ServiceId, Timestamp, Timestamp),
    /// All, from one number to before another.
    All(i64, i64),
}

impl Source {
    /// `None`: there is nothing to find.
    pub(super) fn plan(
        connection: &mut Connection,
        selection: &BatchSelection,
    ) -> Result<Option<Self>, StoreError> {
        let states = &selection.states;
        Ok(if let Some(label) = &selection.label {
            Some(Self::Label(label.clone()))
        } else if selection.held == Some(true) {
            Some(Self::Held)
        } else if selection.is_of_open() && !states.contains(&BatchState::New) {
            Some(Self::Lanes)
        } else if states.iter().eq([&BatchState::Invalid]) {
            Some(Self::Invalid)
        } else if let Some(service_id) = &selection.service_id {
            Self::of_service(connection, service_id, selection)?
        } else {
            Self::of_all(connection, selection)?
        })
    }

    fn of_service(
        connection: &mut Connection,
        service_id: &ServiceId,
        selection: &BatchSelection,
    ) -> Result<Option<Self>, StoreError> {
        let mut from = selection.stored_from.unwrap_or(Timestamp::from_micros(i64::MIN));
        let before = selection.stored_before.unwrap_or(Timestamp::from_micros(i64::MAX));
        if selection.is_of_open() {
            let head = load_head_time(connection, service_id)?;
            let oldest = head.into_iter().chain(oldest_waiting(connection, service_id)?).min();
            let Some(oldest) = oldest else { return Ok(None) };
            from = from.max(oldest);
        }
        Ok(Some(Self::Service(service_id.clone(), from, before)))
    }

    fn of_all(
        connection: &mut Connection,
        selection: &BatchSelection,
    ) -> Result<Option<Self>, StoreError> {
        let (mut first, mut end) = (0, i64::MAX);
        if selection.is_of_open() {
            let Some(oldest) = oldest_open(connection)? else { return Ok(None) };
            first = oldest;
        }
        if let Some(from) = selection.stored_from {
            first = first.max(first_number(connection, from)?);
        }
        if let Some(before) = selection.stored_before {
            end = end_number(connection, before)?;
        }
        Ok(Some(Self::All(first, end)))
    }
}

/// The number of the oldest open batch: it is in a lane, or waits without one.
fn oldest_open(connection: &mut Connection) -> Result<Option<i64>, StoreError> {
    let in_lanes = lanes::table.filter(lanes::busy).select(min(lanes::batch_seq));
    let in_lanes: Vec<Option<i64>> = connection.load_query("oldest_in_lanes", in_lanes)?;
    let waiting = waiting_batches::table
        .filter(waiting_batches::batch_seq.gt(0))
        .order_by(waiting_batches::batch_seq)
        .limit(1)
        .select(waiting_batches::batch_seq);
    let waiting: Vec<i64> = connection.load_query("oldest_without_lane", waiting)?;
    Ok(in_lanes.into_iter().flatten().chain(waiting).min())
}
