use axum::http::request::Parts;
use grid_batch_core::Timestamp;
use grid_batch_core::batches::StoredBatch;
use grid_batch_core::queries::{BatchDetails, BatchExplanation, PossibleAction, WaitReason};
use serde::Serialize;
use utoipa::ToSchema;

use super::{ReadContext, batch_json::BatchJson, explain::Explained, service_json::ServiceJson};
use crate::{GasAdminReport, GasPause, GasReport, batches::WaitJson, http::Links};

/// Why a batch waits.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BatchExplanationJson {
    text: String,
    batch: BatchJson,
    wait: Option<WaitJson>,
    position: Option<PositionJson>,
    blocker: Option<BlockerJson>,
    service: ServiceJson,
    gas: Option<GasJson>,
    outages: Vec<OutageJson>,
    actions: Vec<ActionJson>,
}

/// Why a service waits.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServiceExplanationJson {
    text: String,
    service: ServiceJson,
    oldest: Option<OldestJson>,
    gas: Option<GasJson>,
    outages: Vec<OutageJson>,
    actions: Vec<ActionJson>,
}

/// A node that does not answer, or does not report its ledger.
#[derive(Debug, Serialize, ToSchema)]
struct OutageJson {
    node: String,
    since: String,
    reason: String,
}

/// The oldest open batch of a service.
#[derive(Debug, Serialize, ToSchema)]
struct OldestJson {
    #[serde(flatten)]
    batch: BatchJson,
    wait: Option<WaitJson>,
}

/// How many batches of the service come before an open one.
#[derive(Debug, Serialize, ToSchema)]
struct PositionJson {
    ahead: u64,
    more_ahead: bool,
}

/// The batch that another one waits for.
#[derive(Debug, Serialize, ToSchema)]
struct BlockerJson {
    id: String,
    service_id: String,
    state: &'static str,
    since: String,
    attempts: u32,
    next_try_at: Option<String>,
    last_error: Option<String>,
    link: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActionJson {
    verb: &'static str,
    text: &'static str,
    batch_id: Option<String>,
    service_id: Option<String>,
}

/// What gas costs, and what may be paid.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct GasJson {
    #[serde(flatten)]
    gas: GasReport,
    pools: Vec<PoolJson>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
struct PoolJson {
    address: String,
    maximum_gas_price_gwei: String,
    paused: Option<GasPause>,
}

impl BatchExplanationJson {
    pub(super) fn new(
        context: &ReadContext,
        request: &Parts,
        explained: &Explained,
        details: &BatchDetails,
        explanation: &BatchExplanation<'_>,
    ) -> Self {
        let links = &context.api.links(request);
        let Explained { service, pause, gas, waits, .. } = explained;
        let BatchDetails { batch, label, ahead, .. } = details;
        let is_open = !batch.progress.state.is_terminal();
        let (count, more_ahead) = ahead.as_ref().map_or((0, false), |it| (it.count, it.more));
        let head = ahead.as_ref().and_then(|ahead| ahead.head.as_ref());
        let error = batch.last_error.clone();
        Self {
            text: explanation.to_string(),
            batch: BatchJson::new(batch.clone(), label.as_ref(), error, links),
            wait: WaitJson::new(batch, ahead.as_ref(), &explanation.also()),
            position: is_open.then_some(PositionJson { ahead: count, more_ahead }),
            blocker: head.map(|head| BlockerJson::new(head, links)),
            service: ServiceJson::new(context, service, pause.as_ref(), links),
            gas: gas.clone(),
            outages: OutageJson::all(waits),
            actions: explanation.actions().iter().map(action_json).collect(),
        }
    }
}

impl ServiceExplanationJson {
    pub(super) fn new(
        context: &ReadContext,
        request: &Parts,
        explained: &Explained,
        text: String,
        actions: Vec<ActionJson>,
    ) -> Self {
        let links = &context.api.links(request);
        let Explained { details, service, pause, gas, waits } = explained;
        let oldest = |details: &BatchDetails| {
            let BatchDetails { batch, label, ahead, .. } = details;
            let wait = WaitJson::new(batch, ahead.as_ref(), &[]);
            let error = batch.last_error.clone();
            let batch = BatchJson::new(batch.clone(), label.as_ref(), error, links);
            OldestJson { batch, wait }
        };
        Self {
            text,
            service: ServiceJson::new(context, service, pause.as_ref(), links),
            oldest: details.as_ref().map(oldest),
            gas: gas.clone(),
            outages: OutageJson::all(waits),
            actions,
        }
    }
}

impl OutageJson {
    fn all(waits: &[WaitReason]) -> Vec<Self> {
        let json = |reason: &WaitReason| match reason {
            WaitReason::Node(outage) => Some(Self {
                node: outage.node.clone(),
                since: outage.since.rfc3339_micros(),
                reason: outage.reason.clone(),
            }),
            _ => None,
        };
        waits.iter().filter_map(json).collect()
    }
}

impl BlockerJson {
    fn new(batch: &StoredBatch, links: &Links<'_>) -> Self {
        Self {
            id: batch.batch_id.to_string(),
            service_id: batch.service_id.to_string(),
            state: batch.progress.state.as_str(),
            since: batch.since.unwrap_or(batch.created_at).rfc3339_micros(),
            attempts: batch.progress.attempts,
            next_try_at: batch.next_try_at.map(Timestamp::rfc3339_micros),
            last_error: batch.last_error.clone(),
            link: links.batch(&batch.batch_id, "", &batch.service_id),
        }
    }
}

pub(super) fn action_json(possible: &PossibleAction<'_>) -> ActionJson {
    ActionJson {
        verb: possible.verb.as_str(),
        text: possible.verb.description(),
        batch_id: possible.batch.map(|batch| batch.batch_id.to_string()),
        service_id: possible.batch.map(|batch| batch.service_id.to_string()),
    }
}

impl GasJson {
    pub(super) fn new(report: GasAdminReport) -> Self {
        let pools = report.pools.into_iter().map(|pool| PoolJson {
            address: pool.address,
            maximum_gas_price_gwei: pool.maximum_gas_price_gwei,
            paused: pool.paused,
        });
        Self { pools: pools.collect(), gas: report.gas }
    }
}
