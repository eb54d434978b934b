use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_core::{BatchError, BatchResult, CommitHistory, LedgerStatus, ServiceId};
use tokio::task::spawn_blocking;

use crate::{nodes::get_statuses, rest_client::RestClient};

/// How many batches are remembered. One at a time is under way.
const REMEMBERED: usize = 1_000;

/// How long a commit that a node reported is taken for what the node has. Behind its URL, another
/// node or an older state of it may answer later.
const TRUSTED_FOR: Duration = Duration::from_secs(5);

/// What this process knows about which node has applied which batch.
///
/// A node is asked about what is not known. A node that has reported a batch as committed has applied it
/// and all before it.
pub(crate) struct NodeRecord {
    history: Arc<dyn CommitHistory>,
    /// All nodes of the ledger, also those that are not used at present.
    nodes: Vec<String>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The last batch that each node reported as committed.
    committed: HashMap<String, (String, Instant)>,
    /// Nodes and batches: the node had applied all batches before this one when it was sent there.
    checked: VecDeque<(String, String)>,
    /// Nodes and batches: the node reported the batch as invalid, and may not have applied all before it.
    doubted: VecDeque<(String, String)>,
}

impl NodeRecord {
    pub(crate) fn new(history: Arc<dyn CommitHistory>, nodes: Vec<String>) -> Self {
        Self { history, nodes, seen: Mutex::default() }
    }

    /// Whether these are all nodes of the ledger.
    pub(crate) fn are_all(&self, nodes: &[String]) -> bool {
        self.nodes.iter().all(|node| nodes.contains(node))
    }

    /// The last batch that was committed before this one.
    pub(crate) async fn committed_before(
        &self,
        service_id: &str,
        batch_id: &str,
    ) -> BatchResult<Option<String>> {
        let invalid = |error: String| BatchError::InternalError(error);
        let service_id: ServiceId =
            service_id.parse().map_err(|error| invalid(format!("{error}")))?;
        let batch_id = batch_id.parse().map_err(|error| invalid(format!("{error}")))?;
        let history = Arc::clone(&self.history);
        let read = spawn_blocking(move || history.committed_before(&service_id, &batch_id)).await;
        let before = read.map_err(|error| invalid(format!("the history failed: {error}")))??;
        Ok(before.map(|id| id.to_string()))
    }

    /// Whether the node reports the batch as committed. It is asked unless it has just reported that.
    pub(crate) async fn has_applied(
        &self,
        client: &RestClient,
        node: &str,
        batch_id: &str,
    ) -> BatchResult<bool> {
        let is_known =
            |(last, at): &(String, Instant)| last == batch_id && at.elapsed() < TRUSTED_FOR;
        if self.lock().committed.get(node).is_some_and(is_known) {
            return Ok(true);
        }
        let reports = get_statuses(node, client, &[batch_id.to_owned()]).await?;
        let is_committed = reports.iter().any(|report| report.status == LedgerStatus::Committed);
        if is_committed {
            self.set_committed(node, batch_id);
        }
        Ok(is_committed)
    }

    /// The node reported the batch as committed.
    pub(crate) fn set_committed(&self, node: &str, batch_id: &str) {
        let commit = (batch_id.to_owned(), Instant::now());
        self.lock().committed.insert(node.to_owned(), commit);
    }

    /// The node has applied all batches before this one, which may be sent to it now.
    pub(crate) fn set_checked(&self, node: &str, batch_id: &str) {
        remember(&mut self.lock().checked, node, batch_id);
    }

    pub(crate) fn was_checked(&self, node: &str, batch_id: &str) -> bool {
        contains(&self.lock().checked, node, batch_id)
    }

    /// The node may not have applied all batches before this one when it found it invalid. Returns
    /// whether that is new.
    pub(crate) fn set_doubted(&self, node: &str, batch_id: &str) -> bool {
        remember(&mut self.lock().doubted, node, batch_id)
    }

    pub(crate) fn is_doubted(&self, node: &str, batch_id: &str) -> bool {
        contains(&self.lock().doubted, node, batch_id)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a pair, and forgets the oldest one beyond the limit. Returns whether it is new.
fn remember(pairs: &mut VecDeque<(String, String)>, node: &str, batch_id: &str) -> bool {
    if contains(pairs, node, batch_id) {
        return false;
    }
    if pairs.len() >= REMEMBERED {
        pairs.pop_front();
    }
    pairs.push_back((node.to_owned(), batch_id.to_owned()));
    true
}

fn contains(pairs: &VecDeque<(String, String)>, node: &str, batch_id: &str) -> bool {
    pairs.iter().any(|pair| pair.0 == node && pair.1 == batch_id)
}

impl fmt::Debug for NodeRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeRecord").finish_non_exhaustive()
    }
}
