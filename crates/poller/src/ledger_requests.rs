use std::{collections::HashMap, sync::Arc, time::Duration};

use grid_batch_core::evidence::{Evidence, EvidenceReport, UnresolvedBatch};
use grid_batch_core::ledger::Ledger;
use grid_batch_core::polling::{BatchId, BatchStatus};
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_nodes::NodePool;
use grid_batch_support::catch_panic_async;
use tokio::{runtime::Handle, sync::mpsc::UnboundedSender, time::timeout};

use crate::{
    BatchStatusReader, MonitorCounters, evidence_search::is_outage, per_service_queue::ServiceJob,
    stats::to_u64, status_answer::StatusAnswer,
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
    pub(crate) nodes: NodePool,
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
        let (replies, counters, limit, nodes) = self.shared();
        self.runtime.spawn(async move {
            let ids: Vec<String> = request.batches.iter().map(|b| b.get_id().to_owned()).collect();
            let reading = within(limit, async {
                let first = ids.first().map_or("", String::as_str);
                let asked = nodes.nodes_to_ask(&request.service_id, first)?;
                let statuses = reader.get_batch_statuses(&request.service_id, &ids).await;
                if statuses.as_ref().is_err_and(is_outage) {
                    nodes.require_new_confirmation(&asked);
                }
                statuses
            });
            let answer = counters.count_panic(catch_panic_async(reading).await);
            let answer = answer.and_then(|statuses| StatusAnswer::validate(&ids, statuses));
            // An error means that the leader has ended and does not need the reply.
            let _ = replies.send(LedgerReply::Statuses(request, answer));
        });
    }

    pub(crate) fn request_evidence(
        &self,
        reader: Arc<dyn Ledger>,
        unresolved: Vec<UnresolvedBatch>,
    ) {
        self.counters.count(|stats| stats.evidence_requests += to_u64(unresolved.len()));
        let (replies, counters, limit, nodes) = self.shared();
        self.runtime.spawn(async move {
            let reading = within(limit, find_evidence(&*reader, &nodes, &unresolved));
            let evidence = counters.count_panic(catch_panic_async(reading).await);
            let _ = replies.send(LedgerReply::Evidence(unresolved, evidence));
        });
    }

    fn shared(&self) -> (UnboundedSender<LedgerReply<I, T>>, MonitorCounters, Duration, NodePool) {
        (self.replies.clone(), self.counters.clone(), self.answer_limit, self.nodes.clone())
    }
}

/// Finds evidence about batches of one service. Evidence of absence or expiry, or that a batch can never be applied, is
/// used only if every node that was asked confirms its ledger again, because a node of another ledger would give the
/// same evidence.
pub(crate) async fn find_evidence(
    ledger: &dyn Ledger,
    nodes: &NodePool,
    batches: &[UnresolvedBatch],
) -> BatchResult<Vec<BatchResult<EvidenceReport>>> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    ledger.check_asked_service(first.service())?;
    let asked = nodes.nodes_to_ask(first.service(), &first.batch_id.to_string())?;
    let mut reports = ledger.find_evidence_of_all(batches).await;
    if reports.iter().any(|report| report.as_ref().is_err_and(is_outage)) {
        nodes.require_new_confirmation(&asked);
    }
    if reports.iter().any(needs_all_nodes) && !nodes.confirm_again(&asked).await {
        let detail = "a node does not confirm that it belongs to the ledger any more";
        for report in reports.iter_mut().filter(|report| needs_all_nodes(report)) {
            *report = Ok(EvidenceReport::with_detail(Evidence::Inconclusive, detail));
        }
    }
    Ok(reports)
}

fn needs_all_nodes(report: &BatchResult<EvidenceReport>) -> bool {
    let needs = |evidence: Evidence| {
        evidence.is_absence() || matches!(evidence, Evidence::Expired | Evidence::NeverApplicable)
    };
    report.as_ref().is_ok_and(|report| needs(report.evidence))
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
    /// Splits it into requests for up to `limit` batches each.
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

/// One request for each service, in the order of the first batch of each.
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

#[cfg(test)]
mod tests {
    use std::future::ready;

    use futures_util::future::{BoxFuture, Either, select};
    use grid_batch_core::batches::BatchState;
    use grid_batch_core::ledger::AttemptId;
    use grid_batch_core::{GlobalScopeId, ItemId, ScopeId, ScopeIdError, ServiceId};
    use grid_batch_nodes::IdentityAnswer;
    use tokio::pin;

    use super::*;

    /// A ledger that has only the service `global` and gives this evidence about each batch.
    struct OneService(Evidence);

    impl Ledger for OneService {
        grid_batch_core::unused_ledger_methods!();

        fn find_evidence_of_all<'a>(
            &'a self,
            batches: &'a [UnresolvedBatch],
        ) -> BoxFuture<'a, Vec<BatchResult<EvidenceReport>>> {
            Box::pin(ready(batches.iter().map(|_| Ok(self.0.into())).collect()))
        }

        fn check_service_id(&self, service_id: &ServiceId) -> Result<(), ScopeIdError> {
            GlobalScopeId::from_service_id(service_id).map(drop)
        }
    }

    /// The nodes `a` and `b`, which must confirm their ledger, and their last answers.
    fn nodes(a: IdentityAnswer, b: IdentityAnswer) -> NodePool {
        let pool = NodePool::new(["a", "b"]);
        pool.require_confirmation(Duration::from_secs(1));
        tell(&pool, &[a, b]);
        pool
    }

    fn tell(pool: &NodePool, answers: &[IdentityAnswer]) {
        for (node, answer) in pool.nodes().iter().zip(answers) {
            let failures = node.identity().failures();
            pool.told_identity(node, answer.clone(), pool.monotonic(), failures);
        }
    }

    /// The evidence about a batch while the nodes give these answers when asked again about their ledger.
    async fn evidence(
        pool: &NodePool,
        service: &str,
        found: Evidence,
        answers: [IdentityAnswer; 2],
    ) -> BatchResult<Evidence> {
        let attempt_id = AttemptId { attempt: 1, epoch: 1 };
        let batch_id = ItemId::from_bytes([1; 64]);
        let service = service.parse().unwrap();
        let batch = UnresolvedBatch::new(service, batch_id, attempt_id, BatchState::InDoubt);
        let (ledger, batches) = (OneService(found), [batch]);
        let finding = find_evidence(&ledger, pool, &batches);
        let asked = async {
            loop {
                select(
                    Box::pin(pool.nodes()[0].identity_wanted()),
                    Box::pin(pool.nodes()[1].identity_wanted()),
                )
                .await;
                tell(pool, &answers);
            }
        };
        pin!(finding, asked);
        let Either::Left((reports, _)) = select(finding, asked).await;
        reports?.remove(0).map(|report| report.evidence)
    }

    #[tokio::test(start_paused = true)]
    async fn evidence_of_any_ledger_needs_every_node() {
        use IdentityAnswer::{Confirmed, Failed, OtherLedger};
        let (down, other) = (Failed("refused".to_owned()), OtherLedger("other".to_owned()));
        use Evidence::{Absent, Expired, Lost, NeverApplicable};
        for found in [Absent, Lost, Expired, NeverApplicable] {
            for (answers, expected) in [
                ([Confirmed, Confirmed], found),
                ([Confirmed, down.clone()], Evidence::Inconclusive),
                ([other.clone(), Confirmed], Evidence::Inconclusive),
            ] {
                let pool = nodes(Confirmed, Confirmed);
                let evidence = evidence(&pool, "global", found, answers.clone()).await;
                assert_eq!(evidence, Ok(expected), "{found:?} {answers:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_node_of_the_ledger_is_enough_for_other_evidence() {
        use IdentityAnswer::{Confirmed, Failed};
        let down = || Failed("refused".to_owned());
        let pool = nodes(Confirmed, down());
        let committed = Evidence::Committed;
        assert_eq!(evidence(&pool, "global", committed, [down(), down()]).await, Ok(committed));
        let pool = nodes(down(), down());
        let error = evidence(&pool, "global", committed, [down(), down()]).await.unwrap_err();
        assert!(
            is_outage(&error) && error.to_string().contains("no node has confirmed"),
            "{error}"
        );
        let unusable = || IdentityAnswer::Unusable("a web page".to_owned());
        let pool = nodes(unusable(), unusable());
        let error = evidence(&pool, "global", committed, [down(), down()]).await.unwrap_err();
        assert!(!is_outage(&error) && error.to_string().contains("a web page"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn ledger_is_not_asked_about_services_of_another_kind() {
        let pool = NodePool::new(["a", "b"]);
        let answers = [IdentityAnswer::None, IdentityAnswer::None];
        let error = evidence(&pool, "a::b", Evidence::Committed, answers).await.unwrap_err();
        assert!(error.to_string().contains("not asked about this service"), "{error}");
    }
}
