use std::{collections::BTreeSet, time::Duration};

use diesel::{dsl::count_star, prelude::*};
use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchState, DltStatus};
use grid_batch_core::queries::{OpenStates, WaitReason};
use grid_batch_core::queue::{BlockedBy, Strategy, WaitKind};

use crate::sql::{
    Connection, Statement, Store, StoreError, result_row,
    schema::{batches, waiting_batches, waiting_holds},
};

/// In a paused service, batches that were never tried wait for the end of the pause.
const OPEN_STATES: &str = "-- open_states
     select s.submitted, s.dlt_status, s.held_at is not null as held, s.delays > 0 as has_failed,
         s.earlier_may_arrive and s.invalid_reported as waits_for_earlier,
         case when s.submitted or s.dlt_status is not null then false
             else coalesce(
                 (select c.paused_at from service_id_claims c where c.service_id = s.service_id),
                 (select d.paused_at from database_state d where d.id = 1)) is not null
             end as paused,
         count(*) as batches, min(s.since) as since, min(s.created_at) as created_at
     from lanes s where s.busy
     group by 1, 2, 3, 4, 5, 6";

const WAITING: &str = "-- count_waiting
     select w.service_id, w.position is null as incomplete,
         case when w.blocker_seq = w.batch_seq then 'MISSING'
             when w.blocker_seq is null then 'NOTHING'
             when w.depends_on_blocker then 'DEPENDENCY' else 'CONFLICT' end as blocker,
         w.blocker_seq is not null and exists (
             select 1 from halts h where h.batch_seq = w.blocker_seq) as halted,
         count(*) as batches
     from waiting_batches w where w.service_id > ''
     group by 1, 2, 3, 4";

const HALTED: &str = "-- services_with_halts
     select distinct h.service_id from halts h where h.service_id > ''";

impl Store {
    /// The states of the batches in lanes, what open batches wait for, and how old the oldest one is. The cost grows
    /// with the number of lanes in use and of batches that wait without a lane.
    pub fn open_states(&self) -> Result<OpenStates, StoreError> {
        let mut connection = self.pools.read()?;
        let connection = &mut *connection;
        let rows: Vec<StateRow> = connection.load(&Statement::new(OPEN_STATES))?;
        // A batch without a lane may be older than all batches in lanes. The one with the lowest number was stored
        // first.
        let first = waiting_batches::table
            .filter(waiting_batches::batch_seq.gt(0))
            .inner_join(batches::table)
            .order_by(waiting_batches::batch_seq)
            .limit(1)
            .select(batches::created_at);
        let first: Vec<i64> = connection.load_query("first_without_lane", first)?;
        let held = waiting_holds::table
            .inner_join(batches::table)
            .filter(waiting_holds::batch_seq.gt(0))
            .filter(batches::ended_at.is_null())
            .select(count_star());
        let held: Vec<i64> = connection.load_query("count_waiting_holds", held)?;
        let now = self.now();
        let age = |micros: i64| now.since(Timestamp::from_micros(micros));
        let created = rows.iter().filter_map(|row| row.created_at).chain(first);
        let mut found = OpenStates {
            oldest: created.map(age).max(),
            held: held.iter().map(|count| count.unsigned_abs()).sum(),
            ..OpenStates::default()
        };
        for row in &rows {
            let state = row.state()?;
            let of_state = found.states.entry(state).or_default();
            of_state.batches += row.batches.unsigned_abs();
            let since = row.since.or(row.created_at);
            of_state.longest = of_state.longest.max(since.map_or(Duration::ZERO, age));
            found.held += if row.held { row.batches.unsigned_abs() } else { 0 };
            *found.waits.entry(row.cause(state)).or_default() += row.batches.unsigned_abs();
        }
        for (cause, batches) in self.count_waiting(connection)? {
            *found.waits.entry(cause).or_default() += batches;
        }
        Ok(found)
    }

    /// What the batches that wait without a lane wait for.
    fn count_waiting(
        &self,
        connection: &mut Connection,
    ) -> Result<Vec<(&'static str, u64)>, StoreError> {
        let rows: Vec<WaitingCountRow> = connection.load(&Statement::new(WAITING))?;
        let halted = connection.load_column(&Statement::new(HALTED))?;
        let halted: BTreeSet<String> = halted.into_iter().collect();
        let count = |row: &WaitingCountRow| {
            let strategy = self.scheduler.strategy(&self.unreadable.read(&row.service_id)?);
            let is_stopped =
                row.halted || strategy.keeps_order() && halted.contains(&row.service_id);
            let kind = if row.incomplete {
                WaitKind::Missing
            } else {
                strategy.waits_for(row.blocked_by(), is_stopped)
            };
            Some((kind.cause(), row.batches.unsigned_abs()))
        };
        Ok(rows.iter().filter_map(count).collect())
    }
}

result_row! {
    struct StateRow {
        submitted: bool,
        dlt_status: Option<String>,
        held: bool,
        has_failed: bool,
        waits_for_earlier: bool,
        paused: bool,
        batches: i64,
        since: Option<i64>,
        created_at: Option<i64>,
    }
}

impl StateRow {
    fn state(&self) -> Result<BatchState, StoreError> {
        let status = self.dlt_status.as_deref().map(str::parse::<DltStatus>);
        let status = status.transpose().map_err(StoreError::corrupt)?;
        BatchState::of(self.submitted, status).map_err(StoreError::corrupt)
    }

    fn cause(&self, state: BatchState) -> &'static str {
        let since = Timestamp::default();
        if self.held {
            WaitReason::Held.name()
        } else if self.paused {
            WaitReason::Paused { since, pause: None }.name()
        } else {
            WaitReason::of_next(state, !self.has_failed, self.waits_for_earlier).name()
        }
    }
}

result_row! {
    struct WaitingCountRow {
        service_id: String,
        incomplete: bool,
        blocker: String,
        halted: bool,
        batches: i64,
    }
}

impl WaitingCountRow {
    fn blocked_by(&self) -> Option<BlockedBy> {
        match self.blocker.as_str() {
            "MISSING" => Some(BlockedBy::Missing),
            "DEPENDENCY" => Some(BlockedBy::Dependency),
            "CONFLICT" => Some(BlockedBy::Conflict),
            _ => None,
        }
    }
}
