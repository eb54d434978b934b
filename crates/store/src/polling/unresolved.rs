//! The batches for which evidence is searched, and what the absence of a batch means in a service that keeps the order.

use std::collections::{BTreeSet, HashMap, HashSet};

use diesel::{QueryableByName, prelude::*};
use grid_batch_core::batches::BatchState;
use grid_batch_core::evidence::{Evidence, Resolution, UnresolvedBatch};
use grid_batch_core::queue::Strategy;
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use crate::{
    batch::{BatchKey, key_rows},
    sql::{
        Connection, Rows, Statement, Store, StoreError, result_row,
        rows::{
            AttemptRow, PROGRESS_COLUMNS, ProgressRow, batch_id, claimed_by, in_states,
            read_deadline, same_transaction,
        },
        schema::{batches, lanes},
    },
};

/// Those of these batches that are unresolved and belong to claimed services.
pub(super) fn unresolved_batches(
    store: &Store,
    instance: &str,
    batches: &BTreeSet<BatchKey>,
) -> Result<Vec<UnresolvedBatch>, StoreError> {
    let (states, claimed) = (in_states("s", BatchState::awaits_poller), claimed_by("s"));
    let statement = Statement::new(
        format!(
            "-- unresolved_batches
             select s.service_id, s.batch_id, s.epoch, s.batch_seq, s.not_accepted,
                 {PROGRESS_COLUMNS},
                 (select count(*) from lanes l where l.service_id = s.service_id and l.submitted
                      and l.blocker_seq is not null and l.position >= s.position) > 0 as in_list,
                 (select p.deadline from batch_payloads p where p.batch_seq = s.batch_seq) as deadline
             from {{x}} join lanes s on s.service_id = x.service_id
             where s.batch_id = x.batch_id and {states} and {claimed}"
        ),
    )
    .rows(key_rows(batches))
    .text(/* claimant */ instance);
    store.pools.read()?.snapshot(|connection| {
        let rows: Vec<UnresolvedRow> = connection.load(&statement)?;
        let mut transactions = transaction_ids(connection, &rows)?;
        rows.into_iter()
            .map(|row| {
                let transactions = transactions.remove(&row.batch_seq).unwrap_or_default();
                row.into_unresolved(transactions)
            })
            .collect()
    })
}

/// The ids of the transactions of a batch.
#[derive(Default)]
struct TransactionIds {
    /// All, in order.
    all: Vec<ItemId>,
    /// Those that another batch of the service contains as well.
    shared: Vec<ItemId>,
}

/// The ids of the transactions of each batch.
fn transaction_ids(
    connection: &mut Connection,
    batches: &[UnresolvedRow],
) -> Result<HashMap<i64, TransactionIds>, StoreError> {
    let same = same_transaction("own");
    // This counts rows, because a planner would turn `exists` into a join that may read all batches.
    let rows: Vec<(i64, Vec<u8>, i64)> = connection.load_row_tuples(
        format!(
            "-- unresolved_transaction_ids
             select x.batch_seq, own.transaction_id,
                 (select count(*) from transactions t join batches b on b.seq = t.batch_seq
                  where {same} and b.service_id = x.service_id and b.seq <> x.batch_seq) as others
             from {{x}} join transactions own on own.batch_seq = x.batch_seq
             order by x.batch_seq, own.position"
        ),
        Rows::default()
            .long("batch_seq", batches.iter().map(|row| row.batch_seq))
            .text("service_id", batches.iter().map(|row| row.attempt.service_id.as_str())),
    )?;
    let mut transactions: HashMap<i64, TransactionIds> = HashMap::new();
    for (batch_seq, transaction_id, others) in rows {
        let id = batch_id(&transaction_id)?;
        let ids = transactions.entry(batch_seq).or_default();
        ids.all.push(id);
        if others > 0 {
            ids.shared.push(id);
        }
    }
    Ok(transactions)
}

result_row! {
    struct UnresolvedRow {
        batch_seq: i64,
        not_accepted: i32,
        in_list: bool,
        deadline: Option<String>,
        #[diesel(embed)]
        attempt: AttemptRow,
        #[diesel(embed)]
        progress: ProgressRow,
    }
}

impl UnresolvedRow {
    fn into_unresolved(self, transactions: TransactionIds) -> Result<UnresolvedBatch, StoreError> {
        let (service_id, batch_id, attempt_id) = self.attempt.read()?;
        let time = |time: Option<i64>| {
            let missing = || StoreError::corrupt("an unresolved batch that was never submitted");
            time.map(Timestamp::from_micros).ok_or_else(missing)
        };
        let progress = self.progress.progress()?;
        let held = self.progress.held.into_held();
        Ok(UnresolvedBatch {
            service_id,
            batch_id,
            transaction_ids: transactions.all,
            shared_transaction_ids: transactions.shared,
            attempt_id,
            not_accepted: u32::try_from(self.not_accepted).map_err(StoreError::corrupt)?,
            state: progress.state,
            submitted_at: time(self.progress.submitted_at)?,
            since: time(self.progress.since)?,
            held: held.is_some(),
            held_until_decision: held.is_some_and(|hold| hold.until_decision),
            last_error: self.progress.last_error,
            earlier_may_arrive: progress.earlier_may_arrive,
            invalid_reported: progress.invalid_reported,
            in_list: self.in_list,
            deadline: read_deadline(self.deadline)?,
        })
    }
}

type Resolved = (UnresolvedBatch, Resolution);

/// Returns the resolutions with changes for absent batches of services that keep the order.
///
/// If the ledger has committed a later batch since this one was sent, then either it does not keep the order, or a
/// restarted node has forgotten that this one is invalid; the batch is held. Otherwise, the absence of a batch counts
/// only when all earlier batches that may be at the ledger are absent as well, because the batch could otherwise be
/// sent again before an earlier lost one.
pub(crate) fn in_order(
    store: &Store,
    resolutions: &[Resolved],
) -> Result<Vec<Resolved>, StoreError> {
    // The present window does not matter, because it may have been larger before a restart.
    let keeps_order = |service: &ServiceId| store.scheduler.strategy(service).keeps_order();
    let absent = || resolutions.iter().filter(|(_, resolution)| has_it_sent_again(resolution));
    let services: BTreeSet<&ServiceId> =
        absent().map(|(batch, _)| &batch.service_id).filter(|id| keeps_order(id)).collect();
    let mut orders = HashMap::new();
    for service in services {
        let own = absent().filter(|(batch, _)| batch.service_id == *service);
        let own = own.map(|(batch, _)| batch.batch_id).collect();
        orders.insert(service.clone(), SentOrder::load(store, service, &own)?);
    }
    let review = |(batch, resolution): &Resolved| {
        let order = orders.get(&batch.service_id).filter(|_| has_it_sent_again(resolution));
        let instead = order.and_then(|order| order.instead_of_absence(batch));
        (batch.clone(), instead.unwrap_or_else(|| resolution.clone()))
    };
    Ok(resolutions.iter().map(review).collect())
}

fn has_it_sent_again(resolution: &Resolution) -> bool {
    matches!(
        resolution,
        Resolution::Evidence(Evidence::Absent | Evidence::Lost | Evidence::Repeatable)
    )
}

/// The batches in the lanes of a service that keeps the order.
struct SentOrder {
    positions: HashMap<ItemId, i64>,
    /// The first batch that may be at the ledger and is not known to be absent.
    first_at_ledger: Option<i64>,
    /// The last committed batch of each lane: when it was stored, when it ended, and its id.
    committed: Vec<(i64, i64, ItemId)>,
}

impl SentOrder {
    fn load(
        store: &Store,
        service_id: &ServiceId,
        absent: &HashSet<ItemId>,
    ) -> Result<Self, StoreError> {
        let last_committed = lanes::last_committed_seq.eq(batches::seq.nullable());
        let query = lanes::table
            .left_join(batches::table.on(last_committed))
            .filter(lanes::service_id.eq(service_id.as_str()))
            .order_by((lanes::service_id, lanes::lane))
            .select((
                (lanes::batch_id, lanes::position, lanes::submitted),
                (batches::batch_id, batches::created_at, batches::ended_at).nullable(),
            ));
        let rows: Vec<PipelineRow> = store.pools.read()?.load_query("pipeline", query)?;
        let mut order =
            Self { positions: HashMap::new(), first_at_ledger: None, committed: Vec::new() };
        for ((id, position, submitted), committed) in rows {
            if let (Some(id), Some(position)) = (id, position) {
                let id = batch_id(&id)?;
                order.positions.insert(id, position);
                if submitted && !absent.contains(&id) {
                    let first = order.first_at_ledger.get_or_insert(position);
                    *first = position.min(*first);
                }
            }
            if let Some((id, created_at, Some(ended_at))) = committed {
                order.committed.push((created_at, ended_at, batch_id(&id)?));
            }
        }
        Ok(order)
    }

    /// What to record instead of the absence of a batch; `None` if the absence is to be recorded.
    fn instead_of_absence(&self, batch: &UnresolvedBatch) -> Option<Resolution> {
        let position = *self.positions.get(&batch.batch_id)?;
        let sent_at = batch.submitted_at.as_micros();
        // A batch that missed a transaction has a position that is later than its `created_at`.
        let is_later = |(created_at, ended_at, _): &&(i64, i64, ItemId)| {
            *created_at > position && *ended_at > sent_at
        };
        if let Some((_, _, later)) = self.committed.iter().find(is_later) {
            return Some(Resolution::HoldUntilDecision(format!(
                "the ledger has committed a later batch, {later}, and does not have this one: either this \
                 one is invalid and the node, which was restarted, has forgotten that, or the ledger does \
                 not keep the order, as ledger.keeps_order says, and needs another strategy; decide \
                 `invalid`, or release the batch if it may be applied after the later one"
            )));
        }
        let waits = self.first_at_ledger.is_some_and(|first| first < position);
        waits.then_some(Resolution::Evidence(Evidence::Inconclusive))
    }
}

/// The batch in a lane, and the last one that was committed there.
type PipelineRow = ((Option<Vec<u8>>, Option<i64>, bool), Option<(Vec<u8>, i64, Option<i64>)>);
