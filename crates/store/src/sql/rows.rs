use std::{borrow::Cow, collections::BTreeSet};

use diesel::QueryableByName;
use grid_batch_core::batches::{
    BatchLabel, BatchState, Deadline, DltStatus, Hold, Progress, TraceContext,
};
use grid_batch_core::claims::SubmittedBatch;
use grid_batch_core::ledger::AttemptId;
use grid_batch_core::queue::FailedAttempts;
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{Rows, StoreError, result_row};

/// The columns of a [`ProgressRow`], from a lane `s`.
pub(crate) const PROGRESS_COLUMNS: &str = "s.submitted, s.dlt_status, s.commit_proven,
    s.earlier_may_arrive, s.invalid_reported, s.attempts, s.submitted_at, s.since, s.checked_at, s.next_try_at, s.last_error,
    s.held_at, s.held_reason, s.held_until_decision";

/// The columns of a [`DelayRow`], from a lane `s`.
pub(crate) const DELAY_COLUMNS: &str =
    "s.delays, s.delayed_since, s.refusals, s.not_accepted, s.pool_parked";

/// Whether a gate delays a batch. A closed gate ends a series of delays after failed attempts.
pub(crate) fn is_parked(progress: Progress, delays: i32) -> bool {
    progress.state == BatchState::Delayed && delays == 0
}

result_row! {
    /// The progress of a batch that is in a lane or has ended.
    pub(crate) struct ProgressRow {
        submitted: bool,
        dlt_status: Option<String>,
        commit_proven: bool,
        earlier_may_arrive: bool,
        invalid_reported: bool,
        attempts: i32,
        pub(crate) submitted_at: Option<i64>,
        pub(crate) since: Option<i64>,
        pub(crate) checked_at: Option<i64>,
        pub(crate) next_try_at: Option<i64>,
        pub(crate) last_error: Option<String>,
        #[diesel(embed)]
        pub(crate) held: HeldRow,
    }
}

impl ProgressRow {
    pub(crate) fn progress(&self) -> Result<Progress, StoreError> {
        Ok(Progress {
            commit_proven: self.commit_proven,
            earlier_may_arrive: self.earlier_may_arrive,
            invalid_reported: self.invalid_reported,
            ..progress(self.submitted, self.dlt_status.as_deref(), self.attempts)?
        })
    }
}

/// The state of a batch and its number of attempts, from the columns that hold them.
pub(crate) fn progress(
    submitted: bool,
    dlt_status: Option<&str>,
    attempts: i32,
) -> Result<Progress, StoreError> {
    let status: Option<DltStatus> =
        dlt_status.map(str::parse).transpose().map_err(StoreError::corrupt)?;
    let state = BatchState::of(submitted, status).map_err(StoreError::corrupt)?;
    let attempts =
        u32::try_from(attempts).map_err(|_| StoreError::corrupt(format!("{attempts} attempts")))?;
    Ok(Progress { state, attempts, ..Progress::NEW })
}

result_row! {
    /// The hold of a batch, if it is held.
    pub(crate) struct HeldRow {
        pub(crate) held_at: Option<i64>,
        pub(crate) held_reason: Option<String>,
        pub(crate) held_until_decision: bool,
    }
}

impl HeldRow {
    pub(crate) fn into_held(self) -> Option<Hold> {
        Some(Hold {
            since: Timestamp::from_micros(self.held_at?),
            reason: self.held_reason?,
            until_decision: self.held_until_decision,
        })
    }
}

result_row! {
    /// How often a batch was delayed.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct DelayRow {
        pub(crate) delays: i32,
        pub(crate) delayed_since: Option<i64>,
        pub(crate) refusals: i32,
        pub(crate) not_accepted: i32,
        /// Whether the last attempt found that only the pool of the withdrawal is parked.
        pub(crate) pool_parked: bool,
    }
}

impl DelayRow {
    pub(crate) fn failed_attempts(self) -> FailedAttempts {
        let count = |number: i32| u32::try_from(number).unwrap_or_default();
        FailedAttempts { delays: count(self.delays), refusals: count(self.refusals) }
    }

    pub(crate) fn set_failed_attempts(&mut self, failed: FailedAttempts) {
        let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        (self.delays, self.refusals) = (number(failed.delays), number(failed.refusals));
    }
}

result_row! {
    /// A batch with its current attempt and epoch.
    pub(crate) struct AttemptRow {
        pub(crate) service_id: String,
        batch_id: Vec<u8>,
        pub(crate) attempts: i32,
        epoch: i64,
    }
}

impl AttemptRow {
    pub(crate) fn read(&self) -> Result<(ServiceId, ItemId, AttemptId), StoreError> {
        let attempt = u32::try_from(self.attempts).map_err(StoreError::corrupt)?;
        let epoch = u64::try_from(self.epoch).map_err(StoreError::corrupt)?;
        let attempt_id = AttemptId { attempt, epoch };
        Ok((service_id(&self.service_id)?, batch_id(&self.batch_id)?, attempt_id))
    }

    pub(crate) fn submitted(&self) -> Result<SubmittedBatch, StoreError> {
        let (service_id, batch_id, attempt_id) = self.read()?;
        Ok(SubmittedBatch { service_id, batch_id, attempt_id })
    }
}

result_row! {
    /// The id of a service.
    pub(crate) struct ServiceRow {
        service_id: String,
    }
}

impl ServiceRow {
    pub(crate) fn read(&self) -> Result<ServiceId, StoreError> {
        service_id(&self.service_id)
    }

    pub(crate) fn name(&self) -> &str {
        &self.service_id
    }
}

/// The ids of services as a group of rows, sorted and without duplicates.
pub(crate) fn service_rows<'a>(services: impl IntoIterator<Item = &'a ServiceId>) -> Rows<'a> {
    let ids: BTreeSet<&str> = services.into_iter().map(ServiceId::as_str).collect();
    Rows::default().text("service_id", ids)
}

pub(crate) fn batch_id(bytes: &[u8]) -> Result<ItemId, StoreError> {
    ItemId::try_from(bytes).map_err(StoreError::corrupt)
}

pub(crate) fn read_deadline(text: Option<String>) -> Result<Option<Deadline>, StoreError> {
    text.map(|text| text.parse()).transpose().map_err(StoreError::corrupt)
}

pub(crate) fn read_trace(text: Option<String>) -> Result<Option<TraceContext>, StoreError> {
    text.map(|text| text.parse()).transpose().map_err(StoreError::corrupt)
}

pub(crate) fn service_id(text: &str) -> Result<ServiceId, StoreError> {
    text.parse().map_err(StoreError::corrupt)
}

pub(crate) fn label(text: Option<String>) -> Result<Option<BatchLabel>, StoreError> {
    text.map(|text| text.parse().map_err(StoreError::corrupt)).transpose()
}

pub(crate) fn time(micros: Option<i64>) -> Option<Timestamp> {
    micros.map(Timestamp::from_micros)
}

/// A number of attempts as the databases store it.
pub(crate) fn attempts(attempts: u32) -> i32 {
    i32::try_from(attempts).unwrap_or(i32::MAX)
}

/// A limit as the databases take it.
pub(crate) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A message in a form that can be stored: without zero characters, which PostgreSQL refuses, and cut to 4,096 bytes.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 4096;
    let cut = &text[..text.floor_char_boundary(LONGEST)];
    if cut.contains('\0') { cut.replace('\0', "\u{fffd}").into() } else { cut.into() }
}

/// The condition that the batch of a lane is in one of the states that `wanted` selects.
///
/// ```text
/// ((s.submitted and s.dlt_status = 'PENDING') or (not s.submitted and s.dlt_status is null))
/// ```
pub(crate) fn in_states(lane: &str, wanted: impl Fn(BatchState) -> bool) -> String {
    let states: Vec<String> = BatchState::ALL
        .into_iter()
        .filter(|state| wanted(*state))
        .map(|state| {
            let not = if state.submitted() { "" } else { "not " };
            match state.dlt_status() {
                Some(status) => {
                    format!("({not}{lane}.submitted and {lane}.dlt_status = '{status}')")
                }
                None => format!("({not}{lane}.submitted and {lane}.dlt_status is null)"),
            }
        })
        .collect();
    format!("({})", states.join(" or "))
}

/// How far a stored time may be in the future without being wrong, because the clocks of two instances may differ by
/// the duration of a measurement.
pub(crate) const AHEAD: i64 = 2_000_000;

/// The condition that a lane has a batch to take, which must not be held. The first `?` is the present time; the second
/// one is the present time plus [`AHEAD`]. A delay that began later than that is over, because the clock was set back
/// since.
pub(crate) fn is_ready(lane: &str) -> String {
    let states = in_states(lane, BatchState::awaits_queuer);
    format!(
        "{lane}.busy and {states} and {lane}.held_at is null and ({lane}.next_try_at is null or {lane}.next_try_at <= ?
             or {lane}.since > ?)"
    )
}

/// The condition that the batch of a lane is with a submitter.
pub(crate) fn with_submitter(lane: &str) -> String {
    in_states(lane, |state| state == BatchState::Submitting)
}

/// The condition that no lane `s` of the service of `row` meets `condition`.
///
/// It counts rows, because a planner would turn `not exists` into a join that may read all lanes.
pub(crate) fn no_lane(row: &str, condition: &str) -> String {
    format!(
        "(select count(*) from lanes s where s.service_id = {row}.service_id and {condition}) = 0"
    )
}

/// The condition that an instance has confirmed its ledger. If the database is not bound to a ledger, as in a program
/// that embeds the store without one, nothing needs to be confirmed.
pub(crate) fn confirmed_ledger(instance: &str) -> String {
    format!(
        "({instance}.ledger_id is not null
             or not exists (select 1 from ledger l where l.id = 1))"
    )
}

/// The condition that the instance `?` claims the service of a lane.
pub(crate) fn claimed_by(lane: &str) -> String {
    // This is a subquery for each lane, because the planner would turn `exists` into a join that may begin with all
    // services of the claimant.
    format!(
        "(select c.claimant from service_id_claims c where c.service_id = {lane}.service_id) = ?"
    )
}

/// The condition that the instance `?` may take batches of the service of a lane: it claims the service, and neither
/// the service nor the instance is paused or draining.
pub(crate) fn takeable_by(lane: &str) -> String {
    // This reads the same rows as `claimed_by`, and the row of the instance once.
    format!(
        "(select case when c.paused_at is null then c.claimant end
             from service_id_claims c where c.service_id = {lane}.service_id)
             = (select i.instance_id from instances i where i.instance_id = ? and not i.paused
                     and not i.draining)"
    )
}

/// The condition that `transactions t` has the same transaction as `row`.
///
/// The index contains only the first 7 bytes of an id, which PostgreSQL stores in 8.
pub(crate) fn same_transaction(row: &str) -> String {
    format!(
        "substr(t.transaction_id, 1, 7) = substr({row}.transaction_id, 1, 7)
             and t.transaction_id = {row}.transaction_id"
    )
}
