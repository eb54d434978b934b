use std::time::Duration;

use diesel::{
    dsl::{count_star, min},
    prelude::*,
};
use grid_batch_core::{BatchState, DltStatus, Timestamp};

use crate::sql::{
    Store, StoreError,
    schema::{batches, lanes, waiting_batches},
};

/// The batches in lanes by state, and how old the oldest open batch is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenStates {
    /// The states that a batch in a lane has.
    pub states: Vec<OpenState>,
    /// How long ago the oldest open batch was accepted; `None` if none is open.
    pub oldest: Option<Duration>,
}

/// The batches in lanes that are in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenState {
    /// The state.
    pub state: BatchState,
    /// How many batches are in it.
    pub batches: u64,
    /// How long the first of them has been in it.
    pub longest: Duration,
}

/// A state, the number of its batches, since when the first is in it, and when the oldest was accepted.
type StateRow = (bool, Option<String>, i64, Option<i64>, Option<i64>);

impl Store {
    /// The states of the batches in lanes, and how old the oldest open batch is. The cost grows with the number
    /// of lanes in use.
    pub fn open_states(&self) -> Result<OpenStates, StoreError> {
        let query = lanes::table
            .filter(lanes::busy)
            .group_by((lanes::submitted, lanes::dlt_status))
            .select((
                lanes::submitted,
                lanes::dlt_status,
                count_star(),
                min(lanes::since),
                min(lanes::created_at),
            ));
        let mut connection = self.pools.read()?;
        let rows: Vec<StateRow> = connection.load_query("open_states", query)?;
        // A batch without a lane may be older than all batches in lanes. The first was stored first.
        let first = waiting_batches::table
            .filter(waiting_batches::batch_seq.gt(0))
            .inner_join(batches::table)
            .order_by(waiting_batches::batch_seq)
            .limit(1)
            .select(batches::created_at);
        let first: Vec<i64> = connection.load_query("first_without_lane", first)?;
        let now = self.now();
        let age = |micros: i64| now.since(Timestamp::from_micros(micros));
        let created = rows.iter().filter_map(|row| row.4).chain(first);
        Ok(OpenStates {
            oldest: created.map(age).max(),
            states: rows.into_iter().map(|row| open_state(row, age)).collect::<Result<_, _>>()?,
        })
    }
}

fn open_state(
    (submitted, status, batches, since, created): StateRow,
    age: impl Fn(i64) -> Duration,
) -> Result<OpenState, StoreError> {
    let status: Option<DltStatus> =
        status.map(|status| status.parse().map_err(StoreError::corrupt)).transpose()?;
    Ok(OpenState {
        state: BatchState::of(submitted, status).map_err(StoreError::corrupt)?,
        batches: u64::try_from(batches).map_err(StoreError::corrupt)?,
        longest: since.or(created).map_or(Duration::ZERO, age),
    })
}
