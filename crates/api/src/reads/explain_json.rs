use grid_batch_core::Timestamp;
use grid_batch_core::batches::StoredBatch;
use grid_batch_core::ledger::Outage;
use grid_batch_core::queries::{
    BatchDetails, BatchExplanation, PossibleAction, ServiceExplanation, WaitReason,
};
use grid_batch_core::queue::Ahead;

use super::{
    ReadContext,
    batch_json::BatchJson,
    explain::Explained,
    explain_queued::{ExplainedQueued, ExplainedQueuedJson},
    service_json::ServiceJson,
};
use crate::{
    GasAdminReport, GasPause, GasReport, PoolReport,
    batches::WaitJson,
    http::{BatchStateName, Links, Time, json_types},
    withdrawals::{Queued, QueuedVerb},
};

json_types! {
    /// Why a batch waits.
    pub(super) struct BatchExplanationJson(
        context: &ReadContext,
        explained: &Explained,
        details: &BatchDetails,
        explanation: &BatchExplanation<'_>,
        links: &Links<'_>,
        now: Timestamp,
    ) {
        text: String = text(explained, explanation),
        /// The withdrawal whose latest batch it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        withdrawal: Option<ExplainedQueuedJson> =
            queued_json(explained, Queued::Withdrawal, links),
        /// The transaction whose latest batch it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        transaction: Option<ExplainedQueuedJson> =
            queued_json(explained, Queued::Transaction, links),
        batch: BatchJson = batch_json(details, links),
        wait: Option<WaitJson> =
            WaitJson::new(&details.batch, details.ahead.as_ref(), &explanation.also()),
        position: Option<PositionJson> = (!details.batch.progress.state.is_terminal())
            .then(|| PositionJson::new(details.ahead.as_ref())),
        blocker: Option<BlockerJson> =
            explanation.blocker().map(|head| BlockerJson::new(head, links)),
        service: ServiceJson =
            ServiceJson::new(context, &explained.service, explained.pause.as_ref(), links, now),
        gas: Option<GasJson> = explained.gas.clone(),
        outages: Vec<OutageJson> = outages(&explained.waits),
        actions: Vec<ActionJson> = actions(explained, explanation.actions()),
    }

    /// Why a service waits.
    pub(super) struct ServiceExplanationJson(
        context: &ReadContext,
        explained: &Explained,
        explanation: &ServiceExplanation<'_>,
        links: &Links<'_>,
        now: Timestamp,
    ) {
        text: String = explanation.to_string(),
        service: ServiceJson =
            ServiceJson::new(context, &explained.service, explained.pause.as_ref(), links, now),
        oldest: Option<OldestJson> =
            explained.details.as_ref().map(|details| OldestJson::new(details, links)),
        gas: Option<GasJson> = explained.gas.clone(),
        outages: Vec<OutageJson> = outages(&explained.waits),
        actions: Vec<ActionJson> = actions(explained, explanation.actions()),
    }

    /// A node that does not answer, or does not report its ledger.
    struct OutageJson(outage: &Outage) {
        node: String = outage.node.clone(),
        since: Time = Time(outage.since),
        reason: String = outage.reason.clone(),
    }

    /// The oldest open batch of a service.
    struct OldestJson(details: &BatchDetails, links: &Links<'_>) {
        #[serde(flatten)]
        batch: BatchJson = batch_json(details, links),
        wait: Option<WaitJson> = WaitJson::new(&details.batch, details.ahead.as_ref(), &[]),
    }

    /// How many batches of the service come before an open one.
    struct PositionJson(queue: Option<&Ahead>) {
        ahead: u64 = queue.map_or(0, |queue| queue.count),
        more_ahead: bool = queue.is_some_and(|queue| queue.more),
    }

    /// The batch that another one waits for.
    struct BlockerJson(batch: &StoredBatch, links: &Links<'_>) {
        id: String = batch.batch_id.to_string(),
        service_id: String = batch.service_id.to_string(),
        state: BatchStateName = BatchStateName(batch.progress.state),
        since: Time = Time(batch.since.unwrap_or(batch.created_at)),
        attempts: u32 = batch.progress.attempts,
        next_try_at: Option<Time> = batch.next_try_at.map(Time),
        last_error: Option<String> = batch.last_error.clone(),
        link: String = links.batch(&batch.batch_id, "", &batch.service_id),
    }

    /// What can be done about a batch, a withdrawal, a transaction or, if none of them is named, the service, or all
    /// services.
    pub(super) struct ActionJson(
        done: &'static str,
        description: &'static str,
        typed: String,
        possible: Option<&PossibleAction<'_>>,
        of_withdrawal: Option<String>,
        of_transaction: Option<String>,
    ) {
        verb: &'static str = done,
        text: &'static str = description,
        /// The command that does it, with your reason in place of `TEXT`.
        command: String = typed,
        batch_id: Option<String> =
            possible.and_then(PossibleAction::batch).map(|batch| batch.batch_id.to_string()),
        service_id: Option<String> =
            possible.and_then(PossibleAction::service_id).map(ToString::to_string),
        #[serde(skip_serializing_if = "Option::is_none")]
        withdrawal_id: Option<String> = of_withdrawal,
        #[serde(skip_serializing_if = "Option::is_none")]
        transaction_id: Option<String> = of_transaction,
    }

    /// What gas costs, and what may be paid.
    #[derive(Clone)]
    pub(super) struct GasJson(report: GasAdminReport) {
        #[serde(flatten)]
        gas: GasReport = report.gas,
        pools: Vec<PoolJson> = report.pools.into_iter().map(PoolJson::new).collect(),
    }

    #[derive(Clone)]
    struct PoolJson(pool: PoolReport) {
        address: String = pool.address,
        maximum_gas_price_gwei: String = pool.maximum_gas_price_gwei,
        paused: Option<GasPause> = pool.paused,
    }
}

impl ActionJson {
    fn of_batch(possible: &PossibleAction<'_>) -> Self {
        let verb = possible.verb;
        let (description, command) = (verb.description(), possible.to_string());
        Self::new(verb.as_str(), description, command, Some(possible), None, None)
    }

    pub(super) fn of_queued(verb: &QueuedVerb, kind: Queued, id: String) -> Self {
        let command = format!("grid-batch {kind} {} {id} --reason TEXT", verb.name);
        let (withdrawal, transaction) = match kind {
            Queued::Withdrawal => (Some(id), None),
            Queued::Transaction => (None, Some(id)),
        };
        Self::new(verb.name, verb.text, command, None, withdrawal, transaction)
    }
}

fn text(explained: &Explained, explanation: &BatchExplanation<'_>) -> String {
    let wait = explained.details.as_ref().and_then(BatchDetails::wait);
    match &explained.queued {
        Some(queued) => queued.text(explanation, wait.map(|wait| wait.reason)),
        None => explanation.to_string(),
    }
}

fn queued_json(
    explained: &Explained,
    kind: Queued,
    links: &Links<'_>,
) -> Option<ExplainedQueuedJson> {
    let queued = explained.queued.as_ref().filter(|queued| queued.kind == kind)?;
    Some(ExplainedQueuedJson::new(queued, links))
}

/// What can be done about what is explained, and then about its batches and its service.
fn actions(explained: &Explained, of_batches: Vec<PossibleAction<'_>>) -> Vec<ActionJson> {
    let queued = explained.queued.iter().chain(&explained.queued_ahead);
    let of_queued = queued.flat_map(ExplainedQueued::actions);
    of_queued.chain(of_batches.iter().map(ActionJson::of_batch)).collect()
}

fn batch_json(details: &BatchDetails, links: &Links<'_>) -> BatchJson {
    let BatchDetails { batch, label, .. } = details;
    BatchJson::new(batch, label.as_ref(), batch.last_error.clone(), links)
}

fn outages(waits: &[WaitReason]) -> Vec<OutageJson> {
    let json = |reason: &WaitReason| match reason {
        WaitReason::Node(outage) => Some(OutageJson::new(outage)),
        _ => None,
    };
    waits.iter().filter_map(json).collect()
}
