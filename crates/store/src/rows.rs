use std::{borrow::Cow, collections::BTreeSet};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text},
};
use grid_batch_core::{
    AttemptId, BatchState, DltStatus, HeaderId, Hold, Progress, ServiceId, StoredBatch, Timestamp,
};

use crate::{StoreError, statement::Rows};

/// The columns of a [`BatchRow`], from `batches b` and, where it has one, its lane `s`.
pub(crate) const BATCH_COLUMNS: &str = "b.service_id, b.batch_id, b.created_at, b.ended_at,
    case when s.batch_seq is null then b.ended_at is not null else s.submitted end as submitted,
    coalesce(s.dlt_status, b.dlt_status) as dlt_status,
    coalesce(s.commit_proven, false) as commit_proven,
    coalesce(s.attempts, b.attempts) as attempts,
    coalesce(s.submitted_at, b.submitted_at) as submitted_at,
    s.since, coalesce(s.checked_at, b.checked_at) as checked_at,
    s.next_try_at, s.held_at, s.held_reason,
    coalesce(s.last_error, b.last_error) as last_error";

/// The lane of `batches b`, where it has one.
pub(crate) const WITH_LANE: &str =
    "left join batch_statuses s on s.service_id = b.service_id and s.batch_seq = b.seq";

/// The columns of a [`StandingRow`], from a lane `s`.
pub(crate) const STANDING_COLUMNS: &str = "s.submitted, s.dlt_status, s.commit_proven, s.attempts,
    s.submitted_at, s.since, s.checked_at, s.next_try_at, s.last_error, s.held_at, s.held_reason";

/// One batch, as [`BATCH_COLUMNS`] reads it.
#[derive(QueryableByName)]
pub(crate) struct BatchRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    ended_at: Option<i64>,
    #[diesel(embed)]
    standing: StandingRow,
}

impl BatchRow {
    pub(crate) fn into_batch(self) -> Result<StoredBatch, StoreError> {
        Ok(StoredBatch {
            progress: self.standing.progress()?,
            service_id: service_id(&self.service_id)?,
            batch_id: batch_id(&self.batch_id)?,
            created_at: Timestamp::from_micros(self.created_at),
            submitted_at: time(self.standing.submitted_at),
            checked_at: time(self.standing.checked_at),
            next_try_at: time(self.standing.next_try_at),
            last_error: self.standing.last_error,
            held: self.standing.held.into_held(),
            ended_at: time(self.ended_at),
        })
    }
}

/// Where a batch stands, and since when: of a batch that has ended or of one in a lane.
#[derive(QueryableByName)]
pub(crate) struct StandingRow {
    #[diesel(sql_type = Bool)]
    submitted: bool,
    #[diesel(sql_type = Nullable<Text>)]
    dlt_status: Option<String>,
    #[diesel(sql_type = Bool)]
    commit_proven: bool,
    #[diesel(sql_type = Integer)]
    attempts: i32,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) submitted_at: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) since: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) checked_at: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) next_try_at: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) last_error: Option<String>,
    #[diesel(embed)]
    pub(crate) held: HeldRow,
}

impl StandingRow {
    pub(crate) fn progress(&self) -> Result<Progress, StoreError> {
        progress(self.submitted, self.dlt_status.as_deref(), self.attempts, self.commit_proven)
    }
}

/// The progress of a batch, from the columns that hold it.
pub(crate) fn progress(
    submitted: bool,
    dlt_status: Option<&str>,
    attempts: i32,
    commit_proven: bool,
) -> Result<Progress, StoreError> {
    let status: Option<DltStatus> =
        dlt_status.map(str::parse).transpose().map_err(StoreError::corrupt)?;
    let state = BatchState::of(submitted, status).map_err(StoreError::corrupt)?;
    let attempts =
        u32::try_from(attempts).map_err(|_| StoreError::corrupt(format!("{attempts} attempts")))?;
    Ok(Progress { state, attempts, commit_proven })
}

/// Whether a batch waits for a person.
#[derive(QueryableByName)]
pub(crate) struct HeldRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) held_at: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) held_reason: Option<String>,
}

impl HeldRow {
    pub(crate) fn into_held(self) -> Option<Hold> {
        Some(Hold { since: Timestamp::from_micros(self.held_at?), reason: self.held_reason? })
    }
}

/// A batch that was handed to a submitter: which one, which time, and in which epoch.
#[derive(QueryableByName)]
pub(crate) struct HandedOutRow {
    #[diesel(sql_type = Text)]
    pub(crate) service_id: String,
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
    #[diesel(sql_type = Integer)]
    attempts: i32,
    #[diesel(sql_type = BigInt)]
    epoch: i64,
}

impl HandedOutRow {
    pub(crate) fn read(&self) -> Result<(ServiceId, HeaderId, AttemptId), StoreError> {
        let attempt = u32::try_from(self.attempts).map_err(StoreError::corrupt)?;
        let epoch = u64::try_from(self.epoch).map_err(StoreError::corrupt)?;
        let attempt_id = AttemptId { attempt, epoch };
        Ok((service_id(&self.service_id)?, batch_id(&self.batch_id)?, attempt_id))
    }
}

/// The name of a service.
#[derive(QueryableByName)]
pub(crate) struct ServiceRow {
    #[diesel(sql_type = Text)]
    service_id: String,
}

impl ServiceRow {
    pub(crate) fn read(&self) -> Result<ServiceId, StoreError> {
        service_id(&self.service_id)
    }
}

/// Services as a group of rows, each once, in the order of their names.
pub(crate) fn names(services: &[ServiceId]) -> Rows<'_> {
    let names: BTreeSet<&str> = services.iter().map(ServiceId::as_str).collect();
    Rows::default().text("service_id", names)
}

pub(crate) fn batch_id(bytes: &[u8]) -> Result<HeaderId, StoreError> {
    HeaderId::try_from(bytes).map_err(StoreError::corrupt)
}

pub(crate) fn service_id(text: &str) -> Result<ServiceId, StoreError> {
    text.parse().map_err(StoreError::corrupt)
}

pub(crate) fn time(micros: Option<i64>) -> Option<Timestamp> {
    micros.map(Timestamp::from_micros)
}

/// A number of attempts as the databases keep it.
pub(crate) fn attempts(attempts: u32) -> i32 {
    i32::try_from(attempts).unwrap_or(i32::MAX)
}

/// A limit as the databases take it.
pub(crate) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A ledger's words as they can be kept: without what PostgreSQL refuses, and not too many.
pub(crate) fn presentable(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 4096;
    let cut = &text[..text.floor_char_boundary(LONGEST)];
    if cut.contains('\0') { cut.replace('\0', "\u{fffd}").into() } else { cut.into() }
}

/// The condition that a lane's batch is in one of the states that `wanted` names.
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

/// The condition that the instance `?` claims the service of a lane.
pub(crate) fn claimed_by(lane: &str) -> String {
    // A subquery for each lane: the planner turns `exists` into a join, and may begin with all
    // services of the claimant.
    format!(
        "(select c.claimant from service_id_claims c where c.service_id = {lane}.service_id) = ?"
    )
}
