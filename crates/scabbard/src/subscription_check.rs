use grid_batch_core::ServiceId;
use tokio::time::timeout;

use crate::{
    context::ScabbardContext,
    observed_nodes::{EventSource, ObservedNode, SubscriptionId, SubscriptionView},
};

/// A subscription whose node has just answered on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckedSubscription {
    pub(crate) id: SubscriptionId,
    /// Whether it has shown every transaction of the service.
    pub(crate) is_whole: bool,
}

impl ScabbardContext {
    /// Checks that the service's subscription at this node is live, and whether its replay has ended.
    ///
    /// A node that answers a ping is still the process that opened the websocket, so it has not restarted; and all
    /// events that it had sent before the answer were processed. A node sends replayed events as fast as it can, so
    /// some arrive between two answers. If none arrives between two answers, the replay has ended.
    pub(crate) async fn check_subscription(
        &self,
        service: &ServiceId,
        source: EventSource,
    ) -> Option<CheckedSubscription> {
        let view = || self.observed.read(service, source, ObservedNode::view);
        let SubscriptionView { id, probe, .. } = view()?;
        let (probe, answered) = (probe?, |view: &SubscriptionView| view.id == id);
        let checking = async {
            let first = probe.round_trip().await.then(view)?.filter(answered)?;
            let second = probe.round_trip().await.then(view)?.filter(answered)?;
            Some(first.received == second.received)
        };
        let has_ended = timeout(self.probe_limit, checking).await.ok()??;
        let is_whole =
            self.observed.update(service, source, |node| node.check_replay(id, has_ended));
        Some(CheckedSubscription { id, is_whole })
    }
}
