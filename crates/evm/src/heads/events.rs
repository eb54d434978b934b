use std::sync::Arc;

use futures_util::{StreamExt, stream::unfold};
use grid_batch_core::ledger::{LedgerEvent, LedgerEventStream};
use tokio::select;

use crate::Evm;

/// An event says that it is time to ask about the withdrawals of a gas admin: at each new block, and when a transaction
/// was sent.
///
/// If a node offers it, new blocks are subscribed to over a websocket at the node's URL; other nodes are asked for
/// their latest block. All gas admins share this.
impl Evm {
    pub(crate) fn subscribe(&self, service_id: &str) -> LedgerEventStream {
        let (watch, service_id) = (Arc::clone(&self.heads), service_id.to_owned());
        let wake_ups = self.context.wake_up.of_service(&service_id);
        let events = unfold((wake_ups, 0), move |(mut wake_ups, mut seen)| {
            let (watch, service_id) = (Arc::clone(&watch), service_id.clone());
            async move {
                select! {
                    biased;
                    () = wake_ups.next() => {}
                    () = watch.changed(&service_id, &mut seen) => {}
                }
                Some((Ok(LedgerEvent::default()), (wake_ups, seen)))
            }
        });
        events.boxed()
    }
}
