use diesel::{QueryableByName, sql_types::Binary};
use grid_batch_core::{
    AttemptId, BatchResult, BatchState, Change, Event, Outcome, RoundStore, ServiceId, TakenBatch,
};

use crate::{
    Store, StoreError,
    dialect::Dialect,
    rows::{HandedOutRow, ServiceRow, in_states, limit, names},
    statement::Statement,
    whose::Whose,
};

impl Store {
    /// Takes the next batch of each of these services that has one to be tried now, and marks it
    /// as being with a submitter: the durable sign that it may be on its way.
    ///
    /// Services that are busy, waiting out a delay, or unknown give nothing; a service that is
    /// named twice gives one batch.
    pub fn take_round(&self, services: &[ServiceId]) -> Result<Vec<TakenBatch>, StoreError> {
        let now = self.now().as_micros();
        self.mark(&take_round(self.pools.dialect(), now, services))
    }

    /// Runs a statement that marks batches and reads them.
    pub(crate) fn mark(&self, statement: &Statement<'_>) -> Result<Vec<TakenBatch>, StoreError> {
        let rows: Vec<TakenRow> =
            self.pools.write()?.transaction(|connection| connection.load(statement))?;
        rows.into_iter().map(TakenRow::into_taken).collect()
    }

    /// Takes batches back that were taken and certainly not sent, to be taken again at any time.
    pub fn give_back(&self, batches: &[TakenBatch]) -> Result<(), StoreError> {
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

    /// Up to `limit` services that have a batch to be tried now, in the order of their names, from
    /// the one after `after`. Going on from the last one answered, and then from the beginning,
    /// gives every service its turn.
    pub fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> Result<Vec<ServiceId>, StoreError> {
        self.ready_services_of(Whose::Anyones, after, limit)
    }

    pub(crate) fn ready_services_of(
        &self,
        whose: Whose<'_>,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> Result<Vec<ServiceId>, StoreError> {
        let after = after.map_or("", ServiceId::as_str);
        let now = self.now().as_micros();
        let statement = ready_services(self.pools.dialect(), whose, now, after, limit);
        let rows: Vec<ServiceRow> = self.pools.read()?.load(&statement)?;
        rows.iter().map(ServiceRow::read).collect()
    }
}

impl RoundStore for Store {
    fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceId>> {
        Ok(Self::ready_services(self, after, limit)?)
    }

    fn take_round(&self, services: &[ServiceId]) -> BatchResult<Vec<TakenBatch>> {
        Ok(Self::take_round(self, services)?)
    }

    fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()> {
        Ok(Self::give_back(self, batches)?)
    }
}

/// The lane `lane` has a batch that may be taken at the time `?`.
fn is_ready(lane: &str) -> String {
    let states = in_states(lane, BatchState::awaits_queuer);
    format!("{lane}.busy and {states} and ({lane}.next_try_at is null or {lane}.next_try_at <= ?)")
}

/// Marks and reads in one statement.
///
/// The batch that is locked must be the one that the statement sees (`batch_seq = r.batch_seq`):
/// where another transaction has just installed the next head, its bytes could not be seen yet.
pub(crate) fn take_round<'a>(
    dialect: Dialect,
    now: i64,
    services: &'a [ServiceId],
) -> Statement<'a> {
    let ready = is_ready("h");
    let lock = dialect.locking("for update of h skip locked");
    let heads = format!(
        "select h.service_id, h.lane, h.batch_seq
         from {{x}} join batch_statuses h on h.service_id = x.service_id
         where {ready}
         {lock}"
    );
    mark_heads(dialect, "take_round", &heads, now, services).long(now)
}

/// As [`take_round`], of services that the instance claims, as long as it may begin to send.
///
/// The claims are locked before the lanes: a lane that is locked for nothing would be waited for.
/// With `coalesce` they are looked up by their services, and not by the claimant that has so many.
pub(crate) fn take_claimed_round<'a>(
    dialect: Dialect,
    now: i64,
    services: &'a [ServiceId],
    Sender { instance, longest_submission }: Sender<'a>,
) -> Statement<'a> {
    let (ready, clock) = (is_ready("h"), dialect.clock());
    let lock = dialect.locking("for key share of c skip locked for update of h skip locked");
    let heads = format!(
        "select h.service_id, h.lane, h.batch_seq
         from {{x}}
         join service_id_claims c on c.service_id = x.service_id
         join batch_statuses h on h.service_id = x.service_id
         where coalesce(c.claimant, null) = ? and {ready} and exists (
             select 1 from instances i
             where i.instance_id = ? and i.expiry_1 > {clock} and i.expiry_2 > {clock} + ?)
         {lock}"
    );
    mark_heads(dialect, "take_claimed_round", &heads, now, services)
        .text(instance)
        .long(now)
        .text(instance)
        .long(longest_submission)
}

/// An instance that begins submissions, and how long one takes at most.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    pub(crate) instance: &'a str,
    pub(crate) longest_submission: i64,
}

/// The statement that marks the lanes `heads`; its own values are still to follow.
fn mark_heads<'a>(
    dialect: Dialect,
    name: &str,
    heads: &str,
    now: i64,
    services: &'a [ServiceId],
) -> Statement<'a> {
    Statement::new(
        dialect,
        format!(
            "-- {name}
             update batch_statuses
             set submitted = true, dlt_status = null, attempts = batch_statuses.attempts + 1,
                 submitted_at = ?, since = ?, next_try_at = null
             from (
                 {heads}
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
}

pub(crate) fn ready_services<'a>(
    dialect: Dialect,
    whose: Whose<'a>,
    now: i64,
    after: &'a str,
    count: usize,
) -> Statement<'a> {
    let (ready, suffix, claimed) = (is_ready("s"), whose.suffix(), whose.condition("s"));
    let statement = Statement::new(
        dialect,
        format!(
            "-- ready_services{suffix}
             select s.service_id from batch_statuses s
             where {ready} and s.service_id > ?{claimed}
             order by s.service_id, s.lane limit ?"
        ),
    );
    whose.bind(statement.long(now).text(after)).long(limit(count))
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
