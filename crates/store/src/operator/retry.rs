use std::collections::BTreeSet;

use diesel::prelude::*;
use grid_batch_core::{DltStatus, HeaderId, ServiceId};

use crate::{
    batch::{AttemptLog, BatchKey, Lane, lock_lanes, lock_services, write_open},
    sql::{
        Store, StoreError,
        rows::{batch_id, limit, service_id},
        schema::lanes,
    },
};

/// The number of services whose delays end in one commit.
const STEP: usize = 500;

/// Ends the delays of one service, or of all. Returns the batches that can be sent now.
pub(crate) fn end_delays(
    store: &Store,
    service: Option<&ServiceId>,
) -> Result<Vec<(ServiceId, HeaderId)>, StoreError> {
    let mut ended = Vec::new();
    let mut after = None;
    loop {
        let step = delayed_batches(store, service, after.as_ref())?;
        let Some((last, _)) = step.last() else { return Ok(ended) };
        after = Some(last.clone());
        ended.extend(end_step(store, &step.into_iter().collect())?);
        if service.is_some() {
            return Ok(ended);
        }
    }
}

fn delayed_batches(
    store: &Store,
    service: Option<&ServiceId>,
    after: Option<&ServiceId>,
) -> Result<Vec<BatchKey>, StoreError> {
    let delayed = lanes::table
        .filter(lanes::busy)
        .filter(lanes::dlt_status.eq(DltStatus::Delayed.as_str()))
        .order_by((lanes::service_id, lanes::lane))
        .limit(limit(STEP))
        .select((lanes::service_id, lanes::batch_id));
    let mut connection = store.pools.read()?;
    let rows: Vec<(String, Option<Vec<u8>>)> = match service {
        Some(service) => connection.load_query(
            "delayed_batches_of",
            delayed.filter(lanes::service_id.eq(service.as_str())),
        )?,
        None => connection.load_query(
            "delayed_batches",
            delayed.filter(lanes::service_id.gt(after.map_or("", ServiceId::as_str))),
        )?,
    };
    rows.into_iter()
        .filter_map(|(service, batch)| Some((service, batch?)))
        .map(|(service, batch)| Ok((service_id(&service)?, batch_id(&batch)?)))
        .collect()
}

fn end_step(store: &Store, batches: &BTreeSet<BatchKey>) -> Result<Vec<BatchKey>, StoreError> {
    store.pools.write()?.write_transaction(|connection| {
        lock_services(connection, batches.iter().map(|(service, _)| service))?;
        let mut lanes = lock_lanes(connection, batches)?;
        let ended: Vec<&Lane> =
            lanes.values_mut().filter_map(|lane| lane.end_delay().then_some(&*lane)).collect();
        let mut log = AttemptLog::default();
        for lane in &ended {
            log.add_action(lane, "delay ended", None, store.now());
        }
        write_open(connection, &ended)?;
        log.write(connection)?;
        Ok(ended.into_iter().map(Lane::key).collect())
    })
}
