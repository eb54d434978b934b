use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::{CommitHistory, CommittedBefore};
use grid_batch_core::{BatchError, BatchResult, ServiceId};
use grid_batch_support::{BlockingWork, BoundedMap, lock};
use tokio::sync::Mutex as AsyncMutex;

use crate::{nodes::get_node_reports, rest_client::RestClient};

/// The number of remembered batches. Usually a few hundred are under way.
const REMEMBERED: usize = 10_000;

/// How many reads of the history of batches run at the same time.
const HISTORY_READS: usize = 8;

/// How long a commit that a node has reported is trusted. Later, another node or an older state may answer behind its
/// URL.
const TRUSTED_FOR: Duration = Duration::from_secs(5);

/// What this process knows about which node has applied which batch.
///
/// A node is asked about unknown batches. A node that reports a batch as committed has applied it and all batches
/// before it.
pub(crate) struct NodeRecord {
    history: Arc<dyn CommitHistory>,
    history_reads: BlockingWork,
    /// All nodes of the ledger, including those that are not used at present.
    nodes: Vec<String>,
    seen: Mutex<Seen>,
}

struct Seen {
    batches: BoundedMap<NodeAndBatch, BatchAtNode>,
    /// Batches that a node reported as invalid although it may not have applied all earlier ones. There are few of
    /// them, and they have a separate map so that other batches do not displace them, because the node may report
    /// INVALID for long.
    doubted: BoundedMap<NodeAndBatch, ()>,
    /// The last question to each node.
    questions: HashMap<String, Arc<AsyncMutex<Option<Answer>>>>,
}

/// The observations of a batch at a node.
#[derive(Debug, Clone, Copy, Default)]
struct BatchAtNode {
    /// When the node last reported it as committed.
    committed_at: Option<Instant>,
    /// Whether the node had applied all earlier batches when this one was sent to it.
    is_checked: bool,
}

type NodeAndBatch = (String, String);

/// A node's answer to which of these batches it has applied.
struct Answer {
    at: Instant,
    asked: HashSet<String>,
    applied: BatchResult<HashSet<String>>,
}

impl NodeRecord {
    pub(crate) fn new(history: Arc<dyn CommitHistory>, nodes: Vec<String>) -> Self {
        let seen = Seen {
            batches: BoundedMap::new(REMEMBERED),
            doubted: BoundedMap::new(REMEMBERED),
            questions: HashMap::new(),
        };
        let history_reads = BlockingWork::new(HISTORY_READS);
        Self { history, history_reads, nodes, seen: Mutex::new(seen) }
    }

    /// Whether these are all nodes of the ledger.
    pub(crate) fn are_all(&self, nodes: &[String]) -> bool {
        self.nodes.iter().all(|node| nodes.contains(node))
    }

    /// The batches that were committed before this one.
    pub(crate) async fn committed_before(
        &self,
        service_id: &str,
        batch_id: &str,
    ) -> BatchResult<CommittedBefore> {
        let invalid = |error: String| BatchError::InternalError(error);
        let service_id: ServiceId =
            service_id.parse().map_err(|error| invalid(format!("{error}")))?;
        let batch_id = batch_id.parse().map_err(|error| invalid(format!("{error}")))?;
        let history = Arc::clone(&self.history);
        let read = move || history.committed_before(&service_id, &batch_id);
        self.history_reads.run(read).await.unwrap_or_else(|panic| Err(panic.into()))
    }

    /// The first of these batches that the node does not report as committed. It is asked about those that
    /// it has not just reported, with one request.
    pub(crate) async fn first_missing(
        &self,
        client: &RestClient,
        node: &str,
        batch_ids: &[String],
    ) -> BatchResult<Option<String>> {
        let began = Instant::now();
        if self.unknown(node, batch_ids).is_empty() {
            return Ok(None);
        }
        let question = Arc::clone(lock(&self.seen).questions.entry(node.to_owned()).or_default());
        let mut last = question.lock().await;
        let unknown = self.unknown(node, batch_ids);
        if unknown.is_empty() {
            return Ok(None);
        }
        // Many batches are sent at the same time, so the answer for another one may be sufficient.
        let is_answered = |answer: &&Answer| {
            answer.at >= began && unknown.iter().all(|id| answer.asked.contains(id))
        };
        if let Some(answer) = last.as_ref().filter(is_answered) {
            return answer.first_missing(&unknown);
        }
        let applied = self.ask(client, node, &unknown).await;
        let asked = unknown.iter().cloned().collect();
        let answer = last.insert(Answer { at: Instant::now(), asked, applied });
        answer.first_missing(&unknown)
    }

    async fn ask(
        &self,
        client: &RestClient,
        node: &str,
        batch_ids: &[String],
    ) -> BatchResult<HashSet<String>> {
        let reports = get_node_reports(node, client, batch_ids).await?.into_iter();
        let committed =
            reports.map(|it| it.report).filter(|it| it.status == LedgerStatus::Committed);
        let applied: HashSet<String> = committed.map(|report| report.batch_id).collect();
        applied.iter().for_each(|id| self.set_committed(node, id));
        Ok(applied)
    }

    /// Those of these batches that the node has not just reported as committed.
    fn unknown(&self, node: &str, batch_ids: &[String]) -> Vec<String> {
        let is_known = |id: &&String| {
            let committed_at = self.at_node(node, id).committed_at;
            committed_at.is_some_and(|at| at.elapsed() < TRUSTED_FOR)
        };
        batch_ids.iter().filter(|id| !is_known(id)).cloned().collect()
    }

    /// Records that the node reported the batch as committed.
    pub(crate) fn set_committed(&self, node: &str, batch_id: &str) {
        self.change(node, batch_id, |batch| batch.committed_at = Some(Instant::now()));
    }

    /// Records that the node has applied all earlier batches, so that this one may be sent to it.
    pub(crate) fn set_checked(&self, node: &str, batch_id: &str) {
        self.change(node, batch_id, |batch| batch.is_checked = true);
    }

    pub(crate) fn was_checked(&self, node: &str, batch_id: &str) -> bool {
        self.at_node(node, batch_id).is_checked
    }

    /// Records that the node may not have applied all earlier batches when it found this one invalid. Returns whether
    /// this is new.
    pub(crate) fn set_doubted(&self, node: &str, batch_id: &str) -> bool {
        let mut seen = lock(&self.seen);
        let key = key(node, batch_id);
        let is_new = !seen.doubted.contains(&key);
        seen.doubted.set(&key, ());
        is_new
    }

    pub(crate) fn is_doubted(&self, node: &str, batch_id: &str) -> bool {
        lock(&self.seen).doubted.contains(&key(node, batch_id))
    }

    fn at_node(&self, node: &str, batch_id: &str) -> BatchAtNode {
        lock(&self.seen).batches.get(&key(node, batch_id)).copied().unwrap_or_default()
    }

    fn change(&self, node: &str, batch_id: &str, change: impl FnOnce(&mut BatchAtNode)) {
        let mut seen = lock(&self.seen);
        let new = BatchAtNode::default;
        change(seen.batches.get_or_insert_with(&key(node, batch_id), new));
    }
}

impl Answer {
    fn first_missing(&self, batch_ids: &[String]) -> BatchResult<Option<String>> {
        let applied = self.applied.as_ref().map_err(Clone::clone)?;
        Ok(batch_ids.iter().find(|id| !applied.contains(*id)).cloned())
    }
}

fn key(node: &str, batch_id: &str) -> NodeAndBatch {
    (node.to_owned(), batch_id.to_owned())
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ItemId;

    use super::*;

    struct NoHistory;

    impl CommitHistory for NoHistory {
        fn committed_before(&self, _: &ServiceId, _: &ItemId) -> BatchResult<CommittedBefore> {
            Ok(CommittedBefore::default())
        }

        fn has_committed(&self, _: &ServiceId) -> BatchResult<bool> {
            Ok(false)
        }
    }

    #[test]
    fn doubt_is_kept_whatever_is_seen_of_other_batches() {
        let record = NodeRecord::new(Arc::new(NoHistory), Vec::new());
        assert!(record.set_doubted("node", "doubted"));
        for number in 0..=REMEMBERED {
            let other = number.to_string();
            record.set_committed("node", &other);
            record.set_checked("node", &other);
        }
        assert!(record.is_doubted("node", "doubted"));
        assert!(!record.set_doubted("node", "doubted"));
    }
}
