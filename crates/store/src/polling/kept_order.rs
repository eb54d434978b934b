//! What the absence of a batch means in a pipeline, where the ledger keeps the order.

use std::collections::{BTreeSet, HashMap, HashSet};

use diesel::prelude::*;
use grid_batch_core::{Evidence, ItemId, Resolution, ServiceId, Strategy, UnresolvedBatch};

use crate::sql::{
    Store, StoreError,
    rows::batch_id as header_id,
    schema::{batches, lanes},
};

type Resolved = (UnresolvedBatch, Resolution);

/// The same resolutions, but for batches of pipelines that are absent.
///
/// If the ledger has committed a later batch since this one was sent, it does not keep the order, or a
/// restarted node has forgotten that this one is invalid: the batch is held. The absence of a batch counts only
/// when all earlier ones that may be at the ledger are absent, too: otherwise the batch could be sent again
/// before an earlier one that was lost, too.
pub(super) fn in_order(
    store: &Store,
    resolutions: &[Resolved],
) -> Result<Vec<Resolved>, StoreError> {
    let is_pipeline =
        |service: &ServiceId| store.scheduler.of(service).strategy == Strategy::Pipeline;
    let absent = || resolutions.iter().filter(|(_, resolution)| has_it_sent_again(resolution));
    let services: BTreeSet<&ServiceId> =
        absent().map(|(batch, _)| &batch.service_id).filter(|id| is_pipeline(id)).collect();
    let mut pipelines = HashMap::new();
    for service in services {
        let own = absent().filter(|(batch, _)| batch.service_id == *service);
        let own = own.map(|(batch, _)| batch.batch_id).collect();
        pipelines.insert(service.clone(), Pipeline::load(store, service, &own)?);
    }
    let review = |(batch, resolution): &Resolved| {
        let pipeline = pipelines.get(&batch.service_id).filter(|_| has_it_sent_again(resolution));
        let instead = pipeline.and_then(|pipeline| pipeline.instead_of_absence(batch));
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

/// The order of a service whose lanes are a pipeline.
struct Pipeline {
    positions: HashMap<ItemId, i64>,
    /// The first one that may be at the ledger, of those that are not known to be absent.
    first_at_ledger: Option<i64>,
    /// Those that were committed last in each lane: when they were stored, and when they ended.
    committed: Vec<(i64, i64, ItemId)>,
}

impl Pipeline {
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
        let rows: Vec<LaneRow> = store.pools.read()?.load_query("pipeline", query)?;
        let mut pipeline =
            Self { positions: HashMap::new(), first_at_ledger: None, committed: Vec::new() };
        for ((id, position, submitted), committed) in rows {
            if let (Some(id), Some(position)) = (id, position) {
                let id = header_id(&id)?;
                pipeline.positions.insert(id, position);
                if submitted && !absent.contains(&id) {
                    let first = pipeline.first_at_ledger.get_or_insert(position);
                    *first = position.min(*first);
                }
            }
            if let Some((id, created_at, Some(ended_at))) = committed {
                pipeline.committed.push((created_at, ended_at, header_id(&id)?));
            }
        }
        Ok(pipeline)
    }

    /// What to record instead of the absence of a batch; `None`: its absence.
    fn instead_of_absence(&self, batch: &UnresolvedBatch) -> Option<Resolution> {
        let position = *self.positions.get(&batch.batch_id)?;
        let sent_at = batch.submitted_at.as_micros();
        // The position of a batch that missed a transaction is later than its `created_at`.
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
type LaneRow = ((Option<Vec<u8>>, Option<i64>, bool), Option<(Vec<u8>, i64, Option<i64>)>);
