//! The state roots of a service at the nodes of its circuit. They are equal unless a commit is under way or the state
//! of a node differs from that of the others.

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{join_all, ready},
    stream,
};
use grid_batch_core::ledger::SubmissionAnswer;
use grid_batch_core::queries::ServicePause;
use grid_batch_core::{ItemId, MonotonicTime, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_http::origin;
use grid_batch_support::lock;
use log::{info, warn};
use tokio::time::timeout;

use crate::{
    Scabbard,
    context::{ScabbardContext, parse_scope},
    node_reports::ServiceNode,
    sender::try_again,
};

/// A batch that waits because the roots differ is tried again after this time.
const COMPARED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How the state roots of the nodes compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateRoots {
    /// A node did not report its root, or there is only one node.
    NotKnown,
    Equal,
    /// They differ, as they do briefly during a commit.
    Differ,
    /// They have differed in the same way for longer than a commit takes, so no batch can commit.
    DifferLastingly,
}

/// What is known about the state roots of services whose circuits have several known nodes.
#[derive(Default)]
pub(crate) struct StateRootLog(Mutex<HashMap<ServiceId, ObservedRoots>>);

#[derive(Default)]
struct ObservedRoots {
    /// Whether something has happened after which the roots may differ, and they have not been equal since.
    may_differ: bool,
    /// When the nodes were last asked, and the result.
    compared: Option<(MonotonicTime, StateRoots)>,
    different: Option<DifferentRoots>,
    /// The batch that was reported without a final status, and since when.
    under_way: Option<(ItemId, MonotonicTime)>,
}

struct DifferentRoots {
    roots: Vec<String>,
    since: MonotonicTime,
    is_logged: bool,
}

impl StateRootLog {
    /// Roots that have differed in the same way for this long differ lastingly.
    const LASTING_AFTER: Duration = Duration::from_secs(3);
    /// The roots are compared while a batch has had no final status for this long.
    const SLOW_AFTER: Duration = Duration::from_secs(5);
    /// The maximum age of a comparison on which a POST relies.
    const COUNTS_FOR: Duration = Duration::from_secs(2);

    /// Records that the roots of the service may differ, so that they are compared until they are equal.
    pub(crate) fn record_may_differ(&self, service: &ServiceId) {
        lock(&self.0).entry(service.clone()).or_default().may_differ = true;
    }

    fn that_may_differ(&self) -> Vec<ServiceId> {
        let log = lock(&self.0);
        let services = log.iter().filter(|(_, observed)| observed.may_differ);
        services.map(|(service, _)| service.clone()).collect()
    }

    /// Records whether the service has a batch without a final status. If a batch has none for long, it may be stuck
    /// because the roots differ.
    pub(crate) fn record_under_way(
        &self,
        service: &ServiceId,
        batch: Option<ItemId>,
        now: MonotonicTime,
    ) {
        let mut log = lock(&self.0);
        let observed = log.entry(service.clone()).or_default();
        let Some(batch) = batch else { return observed.under_way = None };
        match observed.under_way {
            Some((known, since)) if known == batch => {
                observed.may_differ |= now.since(since) >= Self::SLOW_AFTER;
            }
            _ => observed.under_way = Some((batch, now)),
        }
    }

    /// The result on which a POST can rely. `None`: the roots may differ and were not compared lately.
    fn known(&self, service: &ServiceId, now: MonotonicTime) -> Option<StateRoots> {
        let log = lock(&self.0);
        let Some(observed) = log.get(service).filter(|observed| observed.may_differ) else {
            return Some(StateRoots::Equal);
        };
        let (at, roots) = observed.compared?;
        (now.since(at) < Self::COUNTS_FOR).then_some(roots)
    }

    /// Records the roots of all nodes, or that not all are known.
    fn observe(
        &self,
        service: &ServiceId,
        nodes: &[ServiceNode],
        roots: Option<Vec<String>>,
        now: MonotonicTime,
    ) -> StateRoots {
        let mut log = lock(&self.0);
        let observed = log.entry(service.clone()).or_default();
        let result = match roots {
            None => StateRoots::NotKnown,
            Some(roots) => observed.compare(service, nodes, roots, now),
        };
        observed.compared = Some((now, result));
        result
    }
}

impl ObservedRoots {
    fn compare(
        &mut self,
        service: &ServiceId,
        nodes: &[ServiceNode],
        roots: Vec<String>,
        now: MonotonicTime,
    ) -> StateRoots {
        if roots.windows(2).all(|pair| pair[0] == pair[1]) {
            self.may_differ = false;
            if self.different.take().is_some_and(|different| different.is_logged) {
                info!(service:%; "the state roots of the nodes are equal again");
            }
            return StateRoots::Equal;
        }
        self.may_differ = true;
        let is_logged = self.different.as_ref().is_some_and(|different| different.is_logged);
        if self.different.as_ref().is_none_or(|different| different.roots != roots) {
            self.different = Some(DifferentRoots { roots, since: now, is_logged });
        }
        let Some(different) = &mut self.different else { return StateRoots::Differ };
        if now.since(different.since) < StateRootLog::LASTING_AFTER {
            return StateRoots::Differ;
        }
        if !different.is_logged {
            different.is_logged = true;
            let at_nodes = nodes.iter().zip(&different.roots);
            let at_nodes: Vec<_> =
                at_nodes.map(|(node, root)| format!("{}: {root}", origin(&node.url))).collect();
            warn!(service:%, state_roots:? = at_nodes; "{}", ServicePause::DIFFERENT_STATES);
        }
        StateRoots::DifferLastingly
    }
}

impl ScabbardContext {
    /// Requests that the roots of the service be compared soon, if several nodes of its circuit are known.
    pub(crate) fn state_roots_may_differ(&self, scope: &ServiceScopeId) {
        if !self.peers_of(scope).is_empty() {
            self.state_roots.record_may_differ(scope.service_id());
        }
    }

    /// Compares the state roots of all nodes of the service.
    pub(crate) async fn compare_state_roots(
        &self,
        scope: &ServiceScopeId,
        nodes: &[ServiceNode],
    ) -> StateRoots {
        if nodes.len() < 2 {
            return StateRoots::NotKnown;
        }
        let roots = join_all(nodes.iter().map(|node| self.state_root(&node.url, &node.scope)));
        let roots = roots.await.into_iter().collect::<Option<Vec<_>>>();
        self.state_roots.observe(scope.service_id(), nodes, roots, self.clock.monotonic())
    }

    /// The service's state root at this node.
    async fn state_root(&self, node: &str, scope: &ServiceScopeId) -> Option<String> {
        let response = self.client.get_state_root(node, scope).await.ok()?;
        let body = response.body.ok().filter(|_| response.status == 200)?;
        let root: String = serde_json::from_slice(&body).ok()?;
        (!root.is_empty() && root.len() <= 256).then_some(root)
    }

    /// Checks before a POST that the nodes have the same state. Otherwise the batch could not commit, and would stay at
    /// the nodes. The error is the answer for a batch that must not be sent now.
    pub(crate) async fn check_states(
        &self,
        scope: &ServiceScopeId,
    ) -> Result<(), SubmissionAnswer> {
        if self.peers_of(scope).is_empty() {
            return Ok(());
        }
        let known = self.state_roots.known(scope.service_id(), self.clock.monotonic());
        let roots = match known {
            Some(roots) => roots,
            None => {
                let nodes = self.all_nodes(scope, "").unwrap_or_default();
                let comparing = self.compare_state_roots(scope, &nodes);
                timeout(self.question_limit, comparing).await.unwrap_or(StateRoots::NotKnown)
            }
        };
        let message = match roots {
            StateRoots::NotKnown | StateRoots::Equal => return Ok(()),
            StateRoots::Differ => "the state roots of the nodes differ at present",
            StateRoots::DifferLastingly => ServicePause::DIFFERENT_STATES,
        };
        Err(try_again(COMPARED_AGAIN_AFTER, message))
    }
}

/// Finds out for which services the nodes of the circuit have different state roots.
///
/// The nodes are asked only while the roots may differ: after an event stream broke, while a batch takes
/// long, and at the start.
impl Scabbard {
    /// Compares the roots of services whose roots may differ, and of `others`. For each service with a certain result,
    /// returns whether they differ for good.
    pub(crate) async fn compare_roots(&self, others: &[ServiceId]) -> Vec<(ServiceId, bool)> {
        const CONCURRENT: usize = 8;
        let mut services: HashSet<_> = self.0.state_roots.that_may_differ().into_iter().collect();
        services.extend(others.iter().cloned());
        // The circuits with a node that did not answer. Their other services are compared next time, so that such a
        // node delays a round only once.
        let unanswered = Mutex::default();
        let compared = stream::iter(services).map(async |service| {
            let differ = match self.compare_service(&service, &unanswered).await {
                StateRoots::Equal => false,
                StateRoots::DifferLastingly => true,
                StateRoots::NotKnown | StateRoots::Differ => return None,
            };
            Some((service, differ))
        });
        compared.buffer_unordered(CONCURRENT).filter_map(ready).collect().await
    }

    async fn compare_service(
        &self,
        service: &ServiceId,
        unanswered: &Mutex<HashSet<Vec<String>>>,
    ) -> StateRoots {
        let Ok(scope) = parse_scope(service.as_str()) else { return StateRoots::Equal };
        if self.0.peers_of(&scope).is_empty() {
            // There is no other root from which it could differ.
            return StateRoots::Equal;
        }
        let nodes = self.0.all_nodes(&scope, "").unwrap_or_default();
        let urls: Vec<_> = nodes.iter().map(|node| node.url.clone()).collect();
        if lock(unanswered).contains(&urls) {
            return StateRoots::NotKnown;
        }
        let roots = self.0.compare_state_roots(&scope, &nodes).await;
        if roots == StateRoots::NotKnown {
            lock(unanswered).insert(urls);
        }
        roots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> ServiceId {
        "a::b".parse().unwrap()
    }

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    fn observe(log: &StateRootLog, roots: &[&str], seconds: u64) -> StateRoots {
        let roots = (!roots.is_empty()).then(|| roots.iter().map(ToString::to_string).collect());
        log.observe(&service(), &[], roots, at(seconds))
    }

    #[test]
    fn roots_that_stay_different_differ_lastingly() {
        let log = StateRootLog::default();
        assert_eq!(observe(&log, &["1", "1"], 0), StateRoots::Equal);
        assert_eq!(observe(&log, &["2", "1"], 1), StateRoots::Differ);
        assert_eq!(observe(&log, &["2", "1"], 3), StateRoots::Differ);
        assert_eq!(observe(&log, &["2", "3"], 4), StateRoots::Differ, "one has changed");
        assert_eq!(observe(&log, &[], 6), StateRoots::NotKnown);
        assert_eq!(observe(&log, &["2", "3"], 7), StateRoots::DifferLastingly);
        assert_eq!(observe(&log, &["3", "3"], 8), StateRoots::Equal);
        assert_eq!(observe(&log, &["2", "3"], 9), StateRoots::Differ);
    }

    #[test]
    fn roots_are_compared_until_they_are_equal() {
        let log = StateRootLog::default();
        let known = |seconds| log.known(&service(), at(seconds));
        assert_eq!(known(0), Some(StateRoots::Equal), "nothing has happened");
        log.record_may_differ(&service());
        assert_eq!((log.that_may_differ(), known(0)), (vec![service()], None));
        observe(&log, &[], 1);
        assert_eq!(known(2), Some(StateRoots::NotKnown));
        assert_eq!(known(3), None, "the comparison is too old");
        observe(&log, &["1", "2"], 4);
        assert_eq!(known(5), Some(StateRoots::Differ));
        observe(&log, &["2", "2"], 6);
        assert_eq!((log.that_may_differ(), known(99)), (vec![], Some(StateRoots::Equal)));
    }

    #[test]
    fn batch_that_takes_long_causes_a_comparison() {
        let log = StateRootLog::default();
        let id = |number| Some(ItemId::from_bytes([number; 64]));
        let record = |batch, seconds| {
            log.record_under_way(&service(), batch, at(seconds));
            !log.that_may_differ().is_empty()
        };
        let quick = [(id(1), 0), (id(1), 4), (id(2), 5), (id(2), 9), (None, 10), (id(2), 11)];
        assert!(!quick.into_iter().any(|(batch, seconds)| record(batch, seconds)));
        assert!(record(id(2), 16));
    }
}
