use diesel::{
    QueryableByName,
    sql_types::{Binary, Text},
};
use grid_batch_core::{
    BatchResult, BatchState, Event, Outcome, RoundStore, ServiceId, Taken, Ticket,
};

use crate::{
    Change, Store, StoreError,
    dialect::Dialect,
    rows::{HandedOutRow, in_states, limit, service_id},
    statement::{Rows, Statement},
};

impl Store {
    /// Takes the next batch of each of these services that has one to be tried now, and marks it
    /// as being with a submitter: the durable sign that it may be on its way.
    ///
    /// Services that are busy, waiting out a delay, or unknown give nothing; a service that is
    /// named twice gives one batch.
    pub fn take_round(&self, services: &[ServiceId]) -> Result<Vec<Taken>, StoreError> {
        let now = self.now().as_micros();
        let statement = take_round(self.pools.dialect(), now, services);
        let rows: Vec<TakenRow> =
            self.pools.write()?.transaction(|connection| connection.load(&statement))?;
        rows.into_iter().map(TakenRow::into_taken).collect()
    }

    /// Takes batches back that were taken and certainly not sent, to be taken again at any time.
    pub fn give_back(&self, batches: &[Taken]) -> Result<(), StoreError> {
        let now = self.now();
        let never_sent = |taken: &Taken| {
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
        let after = after.map_or("", ServiceId::as_str);
        let statement = ready_services(self.pools.dialect(), self.now().as_micros(), after, limit);
        let rows: Vec<ServiceRow> = self.pools.read()?.load(&statement)?;
        rows.iter().map(|row| service_id(&row.service_id)).collect()
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

    fn take_round(&self, services: &[ServiceId]) -> BatchResult<Vec<Taken>> {
        Ok(Self::take_round(self, services)?)
    }

    fn give_back(&self, batches: &[Taken]) -> BatchResult<()> {
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
    let mut names: Vec<&str> = services.iter().map(ServiceId::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let ready = is_ready("h");
    let lock = dialect.for_update_skip_locked("h");
    Statement::new(
        dialect,
        format!(
            "-- take_round
             update batch_statuses
             set submitted = true, dlt_status = null, attempts = batch_statuses.attempts + 1,
                 submitted_at = ?, since = ?, next_try_at = null
             from (
                 select h.service_id, h.lane, h.batch_seq
                 from {{x}} join batch_statuses h on h.service_id = x.service_id
                 where {ready}
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
    .rows(Rows::default().text("service_id", names))
    .long(now)
}

pub(crate) fn ready_services<'a>(
    dialect: Dialect,
    now: i64,
    after: &'a str,
    count: usize,
) -> Statement<'a> {
    let ready = is_ready("s");
    Statement::new(
        dialect,
        format!(
            "-- ready_services
             select s.service_id from batch_statuses s
             where {ready} and s.service_id > ?
             order by s.service_id, s.lane limit ?"
        ),
    )
    .long(now)
    .text(after)
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
    fn into_taken(self) -> Result<Taken, StoreError> {
        let (service_id, batch_id, Ticket { attempt, epoch }) = self.handed_out.read()?;
        let serialized_batch = self.serialized_batch;
        Ok(Taken { service_id, batch_id, attempt, epoch, serialized_batch })
    }
}

#[derive(QueryableByName)]
struct ServiceRow {
    #[diesel(sql_type = Text)]
    service_id: String,
}
