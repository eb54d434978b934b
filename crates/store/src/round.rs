use diesel::{QueryableByName, sql_types::Binary};
use grid_batch_core::{AttemptId, BatchState, Change, Event, Outcome, ServiceId, TakenBatch};

use crate::{
    Store, StoreError,
    dialect::Dialect,
    rows::{HandedOutRow, ServiceRow, claimed_by, in_states, limit, names},
    statement::Statement,
};

/// An instance that takes batches, and how long one of its submissions lasts at most.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    pub(crate) instance: &'a str,
    pub(crate) longest_submission: i64,
}

impl Store {
    pub(crate) fn take_round(
        &self,
        services: &[ServiceId],
        sender: Sender<'_>,
    ) -> Result<Vec<TakenBatch>, StoreError> {
        let now = self.now().as_micros();
        let statement = take_round(self.pools.dialect(), now, services, sender);
        let rows: Vec<TakenRow> =
            self.pools.write()?.transaction(|connection| connection.load(&statement))?;
        rows.into_iter().map(TakenRow::into_taken).collect()
    }

    pub(crate) fn give_back(&self, batches: &[TakenBatch]) -> Result<(), StoreError> {
        let now = self.now();
        let never_sent = |taken: &TakenBatch| {
            let event = Event::Outcome { attempt: taken.attempt, outcome: Outcome::NotSent };
            Change {
                epoch: Some(taken.epoch),
                error: Some("given back before it was sent".to_owned()),
                retry_at: Some(now),
                ..Change::new(taken.service_id.clone(), taken.batch_id, event)
            }
        };
        self.record(&batches.iter().map(never_sent).collect::<Vec<_>>()).map(drop)
    }

    pub(crate) fn ready_services(
        &self,
        instance: &str,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> Result<Vec<ServiceId>, StoreError> {
        let after = after.map_or("", ServiceId::as_str);
        let now = self.now().as_micros();
        let statement = ready_services(self.pools.dialect(), instance, now, after, limit);
        let rows: Vec<ServiceRow> = self.pools.read()?.load(&statement)?;
        rows.iter().map(ServiceRow::read).collect()
    }
}

/// The lane `lane` has a batch that may be taken at the time `?`.
fn is_ready(lane: &str) -> String {
    let states = in_states(lane, BatchState::awaits_queuer);
    format!("{lane}.busy and {states} and ({lane}.next_try_at is null or {lane}.next_try_at <= ?)")
}

/// Marks and reads in one statement, as long as the instance may begin to send.
///
/// The batch that is locked must be the one that the statement sees (`batch_seq = r.batch_seq`):
/// where another transaction has just installed the next head, its bytes could not be seen yet.
///
/// The claims are locked before the lanes: a lane that is locked for nothing would be waited for.
/// With `coalesce` they are looked up by their services, and not by the claimant that has so many.
fn take_round<'a>(
    dialect: Dialect,
    now: i64,
    services: &'a [ServiceId],
    Sender { instance, longest_submission }: Sender<'a>,
) -> Statement<'a> {
    let (ready, clock) = (is_ready("h"), dialect.clock());
    let lock = dialect.locking("for key share of c skip locked for update of h skip locked");
    Statement::new(
        dialect,
        format!(
            "-- take_round
             update batch_statuses
             set submitted = true, dlt_status = null, attempts = batch_statuses.attempts + 1,
                 submitted_at = ?, since = ?, next_try_at = null
             from (
                 select h.service_id, h.lane, h.batch_seq
             from {{x}}
             join service_id_claims c on c.service_id = x.service_id
             join batch_statuses h on h.service_id = x.service_id
             where coalesce(c.claimant, null) = ? and {ready} and exists (
                 select 1 from instances i
                 where i.instance_id = ? and i.expiry_1 > {clock} and i.expiry_2 > {clock} + ?)
             {lock}
             ) as r
             where batch_statuses.service_id = r.service_id and batch_statuses.lane = r.lane
                 and batch_statuses.batch_seq = r.batch_seq
             returning batch_statuses.service_id, batch_statuses.batch_id,
                 batch_statuses.attempts, batch_statuses.epoch, (
                     select p.serialized_batch from batch_payloads p
                     where p.batch_seq = batch_statuses.batch_seq
                 ) as serialized_batch"
        ),
    )
    .long(now)
    .long(now)
    .rows(names(services))
    .text(instance)
    .long(now)
    .text(instance)
    .long(longest_submission)
}

fn ready_services<'a>(
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
             select s.service_id from batch_statuses s
             where {ready} and s.service_id > ? and {claimed}
             order by s.service_id, s.lane limit ?"
        ),
    )
    .long(now)
    .text(after)
    .text(instance)
    .long(limit(count))
}

#[derive(QueryableByName)]
struct TakenRow {
    #[diesel(embed)]
    handed_out: HandedOutRow,
    #[diesel(sql_type = Binary)]
    serialized_batch: Vec<u8>,
}

impl TakenRow {
    fn into_taken(self) -> Result<TakenBatch, StoreError> {
        let (service_id, batch_id, AttemptId { attempt, epoch }) = self.handed_out.read()?;
        let serialized_batch = self.serialized_batch;
        Ok(TakenBatch { service_id, batch_id, attempt, epoch, serialized_batch })
    }
}
