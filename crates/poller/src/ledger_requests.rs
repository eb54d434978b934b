use std::{collections::HashMap, sync::Arc, time::Duration};

use grid_batch_core::{
    BatchError, BatchId, BatchResult, BatchStatus, BatchStatusReader, EvidenceReport, Ledger,
    UnresolvedBatch,
};
use grid_batch_support::catch_panic_async;
use tokio::{runtime::Handle, sync::mpsc::UnboundedSender, time::timeout};

use crate::{
    MonitorCounters, per_service_queue::ServiceJob, stats::to_u64, status_answer::StatusAnswer,
};

pub(crate) type SharedStatusReader<T> = Arc<dyn BatchStatusReader<Status = T> + Sync>;

/// A request for the statuses of batches of one service.
#[derive(Debug)]
pub(crate) struct StatusRequest<I> {
    pub(crate) service_id: String,
    pub(crate) batches: Vec<I>,
}

/// The end of a request.
pub(crate) enum LedgerReply<I, T> {
    Statuses(StatusRequest<I>, BatchResult<StatusAnswer<T>>),
    /// The batches of one service, and what was found about each of them.
    Evidence(Vec<UnresolvedBatch>, BatchResult<Vec<BatchResult<EvidenceReport>>>),
}

/// Sends requests to ledgers, each in its own task.
pub(crate) struct LedgerRequests<I, T> {
    pub(crate) runtime: Handle,
    pub(crate) replies: UnboundedSender<LedgerReply<I, T>>,
    pub(crate) counters: MonitorCounters,
    pub(crate) answer_limit: Duration,
}

impl<I, T> LedgerRequests<I, T>
where
    I: BatchId + 'static,
    T: BatchStatus + PartialEq + Send + 'static,
{
    pub(crate) fn request_statuses(
        &self,
        reader: SharedStatusReader<T>,
        request: StatusRequest<I>,
    ) {
        self.counters.count(|stats| stats.requests += 1);
        let (replies, counters, limit) = self.shared();
        self.runtime.spawn(async move {
            let ids: Vec<String> = request.batches.iter().map(|b| b.get_id().to_owned()).collect();
            let service = request.service_id.as_str();
            let reading = within(limit, async { reader.get_batch_statuses(service, &ids).await });
            let answer = counters.count_panic(catch_panic_async(reading).await);
            let answer = answer.and_then(|statuses| StatusAnswer::validate(&ids, statuses));
            // If the leader has ended, the reply is not needed any more.
            let _ = replies.send(LedgerReply::Statuses(request, answer));
        });
    }

    pub(crate) fn request_evidence(
        &self,
        reader: Arc<dyn Ledger>,
        unresolved: Vec<UnresolvedBatch>,
    ) {
        self.counters.count(|stats| stats.evidence_requests += to_u64(unresolved.len()));
        let (replies, counters, limit) = self.shared();
        self.runtime.spawn(async move {
            let reading =
                within(limit, async { Ok(reader.find_evidence_of_all(&unresolved).await) });
            let evidence = counters.count_panic(catch_panic_async(reading).await);
            let _ = replies.send(LedgerReply::Evidence(unresolved, evidence));
        });
    }

    fn shared(&self) -> (UnboundedSender<LedgerReply<I, T>>, MonitorCounters, Duration) {
        (self.replies.clone(), self.counters.clone(), self.answer_limit)
    }
}

async fn within<R>(limit: Duration, call: impl Future<Output = BatchResult<R>>) -> BatchResult<R> {
    let timed_out = |_| Err(BatchError::Unavailable(format!("no answer within {limit:?}")));
    timeout(limit, call).await.unwrap_or_else(timed_out)
}

impl<I> ServiceJob for StatusRequest<I> {
    fn service(&self) -> &str {
        &self.service_id
    }
}

impl ServiceJob for UnresolvedBatch {
    fn service(&self) -> &str {
        self.service_id.as_str()
    }
}

impl<I> StatusRequest<I> {
    /// Requests for up to `limit` of these batches each.
    pub(crate) fn split(self, limit: usize) -> Vec<Self> {
        let Self { service_id, mut batches } = self;
        let mut requests = Vec::new();
        while batches.len() > limit {
            let rest = batches.split_off(limit);
            requests.push(Self { service_id: service_id.clone(), batches });
            batches = rest;
        }
        requests.push(Self { service_id, batches });
        requests
    }
}

/// A request for the batches of each service, in the order of the first batch of each.
pub(crate) fn group_by_service<I: BatchId>(batches: Vec<I>) -> Vec<StatusRequest<I>> {
    let mut requests: Vec<StatusRequest<I>> = Vec::new();
    let mut indexes = HashMap::new();
    for batch in batches {
        let service_id = batch.get_service_id().to_owned();
        match indexes.get(&service_id).and_then(|index: &usize| requests.get_mut(*index)) {
            Some(request) => request.batches.push(batch),
            None => {
                indexes.insert(service_id.clone(), requests.len());
                requests.push(StatusRequest { service_id, batches: vec![batch] });
            }
        }
    }
    requests
}
