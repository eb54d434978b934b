use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Text},
};
use grid_batch_core::{
    AttemptId, BatchFits, BatchState, Change, Event, Outcome, Round, ServiceId, TakenBatch,
};

use crate::{
    batch::record,
    sql::{
        Connection, Dialect, Statement, Store, StoreError,
        rows::{
            AttemptRow, ServiceRow, claimed_by, confirmed_ledger, in_states, limit, service_rows,
        },
    },
};

/// The instance that takes a round, and how long one of its submissions lasts at most.
#[derive(Clone, Copy)]
pub(crate) struct RoundOwner<'a> {
    pub(crate) instance: &'a str,
    /// In microseconds.
    pub(crate) longest_submission: i64,
}

pub(crate) fn ready_services(
    store: &Store,
    instance: &str,
    after: Option<&ServiceId>,
    count: usize,
) -> Result<Vec<ServiceId>, StoreError> {
    let after = after.map_or("", ServiceId::as_str);
    let now = store.now().as_micros();
    let statement = ready_services_statement(store.dialect(), instance, now, after, count);
    let rows: Vec<ServiceRow> = store.pools.read()?.load(&statement)?;
    rows.iter().map(ServiceRow::read).collect()
}

pub(crate) fn take_round(
    store: &Store,
    owner: RoundOwner<'_>,
    services: &[ServiceId],
) -> Result<Vec<TakenBatch>, StoreError> {
    let now = store.now().as_micros();
    store.pools.write()?.write_transaction(|connection| take(connection, owner, now, services))
}

/// Takes the batches that fit, in the order of `services`.
pub(crate) fn take_fitting_round(
    store: &Store,
    owner: RoundOwner<'_>,
    services: &[ServiceId],
    fits: &mut BatchFits<'_>,
) -> Result<Round, StoreError> {
    let now = store.now().as_micros();
    store.pools.write()?.write_transaction(|connection| {
        let lengths = load_head_lengths(connection, owner.instance, now, services)?;
        let ready = services.iter().filter(|service| lengths.contains_key(service.as_str()));
        let (fitting, left): (Vec<ServiceId>, _) =
            ready.cloned().partition(|service| fits(lengths[service.as_str()]));
        Ok(Round { batches: take(connection, owner, now, &fitting)?, left })
    })
}

fn take(
    connection: &mut Connection,
    owner: RoundOwner<'_>,
    now: i64,
    services: &[ServiceId],
) -> Result<Vec<TakenBatch>, StoreError> {
    let statement = take_round_statement(connection.dialect(), owner, now, services);
    let rows: Vec<TakenRow> = connection.load(&statement)?;
    rows.into_iter().map(TakenRow::into_taken).collect()
}

/// How many bytes the next batch of each of these services has, if this instance can take it now. Batches of
/// another instance's services must not use up the budget of the round.
///
/// The lanes are not locked. In the rare case that another batch becomes the head before the round is
/// taken, its length is another one.
fn load_head_lengths(
    connection: &mut Connection,
    instance: &str,
    now: i64,
    services: &[ServiceId],
) -> Result<HashMap<String, usize>, StoreError> {
    let statement = head_lengths_statement(connection.dialect(), instance, now, services);
    let rows: Vec<LengthRow> = connection.load(&statement)?;
    rows.into_iter()
        .map(|row| Ok((row.service_id, usize::try_from(row.length).map_err(StoreError::corrupt)?)))
        .collect()
}

pub(crate) fn give_back(store: &Store, batches: &[TakenBatch]) -> Result<(), StoreError> {
    let now = store.now();
    let not_sent = |taken: &TakenBatch| {
        let event = Event::Outcome { attempt: taken.attempt, outcome: Outcome::NotSent };
        Change {
            epoch: Some(taken.epoch),
            error: Some("given back before it was sent".to_owned()),
            retry_at: Some(now),
            ..Change::new(taken.service_id.clone(), taken.batch_id, event)
        }
    };
    record(store, &batches.iter().map(not_sent).collect::<Vec<_>>()).complete().map(drop)
}

/// How far a stored time may be in the future without being wrong: the clocks of two instances
/// differ by the duration of a measurement.
const AHEAD: i64 = 2_000_000;

/// The condition that a lane has a batch to take: one that is not held. The first `?` is the present time, the second one is
/// the present time plus [`AHEAD`]: a delay that began later than that is over, because the clock was set
/// back since.
fn is_ready(lane: &str) -> String {
    let states = in_states(lane, BatchState::awaits_queuer);
    format!(
        "{lane}.busy and {states} and {lane}.held_at is null and ({lane}.next_try_at is null or {lane}.next_try_at <= ?
             or {lane}.since > ?)"
    )
}

fn ready_services_statement<'a>(
    dialect: Dialect,
    instance: &'a str,
    now: i64,
    after: &'a str,
    count: usize,
) -> Statement<'a> {
    let (ready, claimed) = (is_ready("s"), claimed_by("s"));
    Statement::new(
        dialect,
        format!(
            "-- ready_services
             select s.service_id from lanes s
             where {ready} and s.service_id > ? and {claimed}
             order by s.service_id, s.lane limit ?"
        ),
    )
    .long(/* next_try_at */ now)
    .long(/* since */ now.saturating_add(AHEAD))
    .text(after)
    .text(/* claimant */ instance)
    .long(limit(count))
}

fn head_lengths_statement<'a>(
    dialect: Dialect,
    instance: &'a str,
    now: i64,
    services: &'a [ServiceId],
) -> Statement<'a> {
    let ready = is_ready("h");
    Statement::new(
        dialect,
        format!(
            "-- head_lengths
             select h.service_id, cast(length(p.serialized_batch) as bigint) as length
             from {{x}}
             join service_id_claims c on c.service_id = x.service_id
             join lanes h on h.service_id = x.service_id
             join batch_payloads p on p.batch_seq = h.batch_seq
             where coalesce(c.claimant, null) = ? and {ready}"
        ),
    )
    .rows(service_rows(services))
    .text(/* claimant */ instance)
    .long(/* next_try_at */ now)
    .long(/* since */ now.saturating_add(AHEAD))
}

/// Marks batches as submitted and reads their bytes in one statement, while the lease of the
/// instance is long enough for a submission and its ledger is the one that the database is bound to.
///
/// `batch_seq = r.batch_seq` makes sure that the locked batch is the one that the statement sees:
/// after another transaction has installed the next head, its bytes would not be visible yet.
///
/// Claims are locked before lanes, so that a lane of another instance is never locked in vain.
/// `coalesce` makes the planner look claims up by their services rather than by their claimant,
/// which has many.
fn take_round_statement<'a>(
    dialect: Dialect,
    owner: RoundOwner<'a>,
    now: i64,
    services: &'a [ServiceId],
) -> Statement<'a> {
    let (ready, clock, confirmed) = (is_ready("h"), dialect.clock(), confirmed_ledger("i"));
    let lock = dialect.locking("for key share of c skip locked for update of h skip locked");
    Statement::new(
        dialect,
        format!(
            "-- take_round
             update lanes
             set submitted = true, dlt_status = null, attempts = lanes.attempts + 1,
                 submitted_at = ?, since = ?, next_try_at = null
             from (
                 select h.service_id, h.lane, h.batch_seq
                 from {{x}}
                 join service_id_claims c on c.service_id = x.service_id
                 join lanes h on h.service_id = x.service_id
                 where coalesce(c.claimant, null) = ? and {ready} and exists (
                     select 1 from instances i
                     where i.instance_id = ? and i.expiry_1 > {clock} and i.expiry_2 > {clock} + ?
                         and {confirmed})
                 {lock}
             ) as r
             where lanes.service_id = r.service_id and lanes.lane = r.lane
                 and lanes.batch_seq = r.batch_seq
             returning lanes.service_id, lanes.batch_id, lanes.attempts, lanes.epoch, (
                     select p.serialized_batch from batch_payloads p
                     where p.batch_seq = lanes.batch_seq
                 ) as serialized_batch"
        ),
    )
    .long(/* submitted_at */ now)
    .long(/* since */ now)
    .rows(service_rows(services))
    .text(/* claimant */ owner.instance)
    .long(/* next_try_at */ now)
    .long(/* since */ now.saturating_add(AHEAD))
    .text(/* instance_id */ owner.instance)
    .long(owner.longest_submission)
}

#[derive(QueryableByName)]
struct LengthRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    length: i64,
}

#[derive(QueryableByName)]
struct TakenRow {
    #[diesel(embed)]
    attempt: AttemptRow,
    #[diesel(sql_type = Binary)]
    serialized_batch: Vec<u8>,
}

impl TakenRow {
    fn into_taken(self) -> Result<TakenBatch, StoreError> {
        let (service_id, batch_id, AttemptId { attempt, epoch }) = self.attempt.read()?;
        let serialized_batch = self.serialized_batch;
        Ok(TakenBatch { service_id, batch_id, attempt, epoch, serialized_batch })
    }
}
