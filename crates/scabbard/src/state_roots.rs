//! The state roots of a service at the nodes of its circuit. They are equal unless a commit is under
//! way, or the circuit is broken for good.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use grid_batch_core::{MonotonicTime, ScopeId, ServiceId, ServiceScopeId};
use log::{info, warn};

use crate::{context::ScabbardContext, node_reports::ServiceNode};

/// How the state roots of the nodes compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateRoots {
    /// A node did not tell its root, or there is only one node.
    NotKnown,
    Equal,
    /// They differ, as they do for a moment during a commit.
    Differ,
    /// They have differed in the same way for long: the nodes do not agree on the state any more.
    DifferLastingly,
}

/// The services whose state roots were seen to differ.
#[derive(Default)]
pub(crate) struct StateRootLog(Mutex<HashMap<ServiceId, DifferentRoots>>);

struct DifferentRoots {
    roots: Vec<String>,
    since: MonotonicTime,
    is_logged: bool,
}

impl StateRootLog {
    /// Records the roots of all nodes.
    fn observe(
        &self,
        service: &ServiceId,
        roots: Vec<String>,
        now: MonotonicTime,
        lasting_after: Duration,
    ) -> StateRoots {
        let mut log = self.lock();
        if roots.windows(2).all(|pair| pair[0] == pair[1]) {
            if log.remove(service).is_some_and(|different| different.is_logged) {
                info!(service:% = service; "the nodes' state roots are equal again");
            }
            return StateRoots::Equal;
        }
        let fresh = |roots| DifferentRoots { roots, since: now, is_logged: false };
        let seen = log.entry(service.clone()).or_insert_with(|| fresh(roots.clone()));
        if seen.roots != roots {
            let is_logged = seen.is_logged;
            *seen = DifferentRoots { is_logged, ..fresh(roots) };
        }
        if now.since(seen.since) < lasting_after {
            return StateRoots::Differ;
        }
        if !seen.is_logged {
            seen.is_logged = true;
            warn!(
                service:% = service, state_roots:? = seen.roots;
                "the nodes of the circuit have different state roots: nothing can be committed any \
                 more until the operators of the circuit repair it"
            );
        }
        StateRoots::DifferLastingly
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServiceId, DifferentRoots>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScabbardContext {
    /// Compares the state roots of these nodes.
    pub(crate) async fn compare_state_roots(
        &self,
        scope: &ServiceScopeId,
        nodes: &[&ServiceNode],
    ) -> StateRoots {
        if nodes.len() < 2 {
            return StateRoots::NotKnown;
        }
        let roots = join_all(nodes.iter().map(|node| self.state_root(&node.url, &node.scope)));
        let Some(roots) = roots.await.into_iter().collect::<Option<Vec<_>>>() else {
            return StateRoots::NotKnown;
        };
        let now = self.clock.monotonic();
        self.state_roots.observe(scope.service_id(), roots, now, self.absent_after)
    }

    /// The service's state root at this node.
    async fn state_root(&self, node: &str, scope: &ServiceScopeId) -> Option<String> {
        let response = self.client.get_state_root(node, scope).await.ok()?;
        let body = response.body.ok().filter(|_| response.status == 200)?;
        let root: String = serde_json::from_slice(&body).ok()?;
        (!root.is_empty() && root.len() <= 256).then_some(root)
    }
}
