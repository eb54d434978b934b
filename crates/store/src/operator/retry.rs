use std::{collections::BTreeSet, iter};

use diesel::{
    dsl::sql,
    prelude::*,
    sql_types::{Bool, Integer, Text},
};
use grid_batch_core::batches::{BatchState, ChangeOutcome, DltStatus, Stale};
use grid_batch_core::events::EventKind;
use grid_batch_core::operators::{
    ActionEffect, Operator, OperatorAction, OperatorTarget, OperatorVerb,
};
use grid_batch_core::{ItemId, ServiceId};

use super::batch_actions::LockedBatch;
use crate::{
    action_log::{dry_run, record_actions},
    batch::{ActionNote, AttemptLog, BatchKey, Lane, lock_lanes, lock_services, write_open},
    sql::{
        Connection, Store, StoreError,
        groups::{GroupItem, GroupResult, commit_group},
        rows::{batch_id, limit, service_id},
        schema::lanes,
    },
};

/// The number of batches whose delays end in one commit.
const STEP: usize = 500;

/// The result of ending delays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedDelays {
    /// The batches that can be sent now.
    pub batches: Vec<(ServiceId, ItemId)>,
    /// The services of which another transaction keeps a row locked. Their delays continue.
    pub locked: Vec<ServiceId>,
}

impl Store {
    /// Ends the delay of the batch that is next in a service, or in all services, and the hold that began because the
    /// ledger repeatedly refused it. A running server finds these batches when it next scans for ready services.
    ///
    /// An operator's own hold is kept. If another transaction keeps a row of a service locked, its delay also
    /// continues; the result names such services.
    pub fn end_delays(&self, service: Option<&ServiceId>) -> Result<EndedDelays, StoreError> {
        let target = service.cloned().map(OperatorTarget::Service);
        self.retry_delayed(&OperatorAction {
            verb: OperatorVerb::Retry,
            target: target.unwrap_or(OperatorTarget::AllServices),
            reason: None,
            operator: Operator::program(),
            dry_run: false,
        })
    }

    /// Like [`end_delays`](Self::end_delays), for the target of an action, which is a service or all services. Logs the
    /// action for each batch.
    pub fn retry_delayed(&self, action: &OperatorAction) -> Result<EndedDelays, StoreError> {
        let service = action.target.service_id();
        let mut ended = EndedDelays::default();
        let mut after = None;
        loop {
            let step = delayed_batches(self, service, after.as_ref())?;
            let Some((last, lane)) = step.last() else { return Ok(ended) };
            after = Some((last.0.clone(), *lane));
            let batches: Vec<BatchKey> = step.into_iter().map(|(batch, _)| batch).collect();
            end_step(self, action, &batches, &mut ended)?;
        }
    }
}

fn delayed_batches(
    store: &Store,
    service: Option<&ServiceId>,
    after: Option<&(ServiceId, i32)>,
) -> Result<Vec<(BatchKey, i32)>, StoreError> {
    let (after, lane) = after.map_or(("", -1), |(service, lane)| (service.as_str(), *lane));
    let delayed = lanes::table
        .filter(lanes::busy)
        .filter(lanes::dlt_status.eq(DltStatus::Delayed.as_str()))
        .order_by((lanes::service_id, lanes::lane))
        .limit(limit(STEP))
        .select((lanes::service_id, lanes::lane, lanes::batch_id));
    let mut connection = store.pools.read()?;
    let rows: Vec<(String, i32, Option<Vec<u8>>)> = match service {
        Some(service) => connection.load_query(
            "delayed_batches_of",
            delayed.filter(lanes::service_id.eq(service.as_str())).filter(lanes::lane.gt(lane)),
        )?,
        None => connection.load_query(
            "delayed_batches",
            // Written as SQL, because Diesel has no row comparison.
            delayed.filter(
                sql::<Bool>("(lanes.service_id, lanes.lane) > (")
                    .bind::<Text, _>(after)
                    .sql(", ")
                    .bind::<Integer, _>(lane)
                    .sql(")"),
            ),
        )?,
    };
    rows.into_iter()
        .filter_map(|(service, lane, batch)| Some((service, lane, batch?)))
        .map(|(service, lane, batch)| Ok(((service_id(&service)?, batch_id(&batch)?), lane)))
        .collect()
}

impl GroupItem for BatchKey {
    fn services(&self) -> impl Iterator<Item = &ServiceId> {
        iter::once(&self.0)
    }
}

fn end_step(
    store: &Store,
    action: &OperatorAction,
    step: &[BatchKey],
    ended: &mut EndedDelays,
) -> Result<(), StoreError> {
    if action.dry_run {
        ended.batches.extend(would_end(store, action, step)?);
        return Ok(());
    }
    let GroupResult { outcomes, error } =
        commit_group(store, step, |connection, batches| end(store, connection, action, batches));
    let is_ended = |(batch, outcome): (&BatchKey, Option<bool>)| {
        outcome.unwrap_or(false).then(|| batch.clone())
    };
    ended.batches.extend(step.iter().zip(outcomes).filter_map(is_ended));
    match error {
        None => Ok(()),
        Some(StoreError::ServicesLocked { services }) => {
            ended.locked.extend(services);
            Ok(())
        }
        Some(error) => Err(error),
    }
}

/// Ends the delay of one batch.
pub(super) fn end_delay(
    store: &Store,
    connection: &mut Connection,
    LockedBatch { batch, .. }: &LockedBatch,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let state = batch.progress.state;
    let key: BatchKey = (batch.service_id.clone(), batch.batch_id);
    let mut lanes = lock_lanes(connection, &BTreeSet::from([key.clone()]))?;
    let Some(lane) = lanes.get_mut(&key).filter(|_| !state.is_terminal()) else {
        return Ok(ChangeOutcome::Stale(Stale::NotDelayed { state }));
    };
    if !lane.end_delay() {
        return Ok(ChangeOutcome::Stale(Stale::NotDelayed { state }));
    }
    let (mut log, now) = (AttemptLog::default(), store.now());
    log.add_action(lane, delay_ended(reason), now);
    write_open(connection, &[lane])?;
    log.write(connection, store.scheduler.events(), now)?;
    Ok(ChangeOutcome::Applied { state, next_waits: true })
}

/// The batches whose delays would end.
fn would_end(
    store: &Store,
    action: &OperatorAction,
    step: &[BatchKey],
) -> Result<Vec<BatchKey>, StoreError> {
    let mut connection = store.pools.write()?;
    let ended = dry_run(&mut connection, None, |connection| end(store, connection, action, step))?;
    let is_ended = |(batch, ended): (&BatchKey, bool)| ended.then(|| batch.clone());
    Ok(step.iter().zip(ended).filter_map(is_ended).collect())
}

/// Ends the delays of these batches. Returns the batches that had one.
fn end(
    store: &Store,
    connection: &mut Connection,
    action: &OperatorAction,
    batches: &[BatchKey],
) -> Result<Vec<bool>, StoreError> {
    lock_services(connection, batches.iter().map(|(service, _)| service))?;
    let keys: BTreeSet<BatchKey> = batches.iter().cloned().collect();
    let mut lanes = lock_lanes(connection, &keys)?;
    lanes.retain(|_, lane| lane.end_delay());
    let ended: Vec<&Lane> = lanes.values().collect();
    let now = store.now();
    let mut log = AttemptLog::default();
    for lane in &ended {
        log.add_action(lane, delay_ended(action.reason.as_deref()), now);
    }
    write_open(connection, &ended)?;
    log.write(connection, store.scheduler.events(), now)?;
    let targets: Vec<OperatorTarget> = lanes
        .keys()
        .cloned()
        .map(|(service_id, batch_id)| OperatorTarget::Batch { service_id, batch_id, attempt: None })
        .collect();
    let effect = ActionEffect {
        before: BatchState::Delayed.to_string(),
        after: format!("{}, ready", BatchState::Delayed),
        state: Some(BatchState::Delayed),
        next_waits: true,
    };
    let done: Vec<_> = targets.iter().map(|target| (target, &effect)).collect();
    record_actions(connection, action, &done, now)?;
    Ok(batches.iter().map(|batch| lanes.contains_key(batch)).collect())
}

fn delay_ended(reason: Option<&str>) -> ActionNote<'_> {
    ActionNote { kind: EventKind::DelayEnded, action: "delay ended", reason }
}
