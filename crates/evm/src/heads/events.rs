use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use futures_util::{StreamExt, stream::unfold};
use grid_batch_core::{BatchResult, LedgerEvent, LedgerEventStream, LedgerEvents};
use tokio::select;

use super::watch::HeadWatch;
use crate::context::EvmContext;

/// Tells when to ask about the withdrawals of a gas admin: at each new block, and when something was
/// sent.
///
/// Blocks are subscribed to where a node offers that, over a websocket at the node's URL; other nodes
/// are asked for their latest block. All gas admins share that.
#[derive(Clone)]
pub struct EvmEvents {
    context: Arc<EvmContext>,
    watch: Arc<HeadWatch>,
}

impl EvmEvents {
    pub(crate) fn new(context: Arc<EvmContext>) -> Self {
        let watch = Arc::new(HeadWatch::new(Arc::clone(&context)));
        Self { context, watch }
    }
}

impl LedgerEvents for EvmEvents {
    fn subscribe<'a>(
        &'a self,
        service_id: &'a str,
    ) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        let (watch, service_id) = (Arc::clone(&self.watch), service_id.to_owned());
        let hints = self.context.hints.of_service(&service_id);
        Box::pin(async move {
            let events = unfold((hints, 0), move |(mut hints, mut seen)| {
                let (watch, service_id) = (Arc::clone(&watch), service_id.clone());
                async move {
                    select! {
                        biased;
                        () = hints.next() => {}
                        () = watch.changed(&service_id, &mut seen) => {}
                    }
                    Some((Ok(LedgerEvent::default()), (hints, seen)))
                }
            });
            Ok(events.boxed())
        })
    }
}

impl fmt::Debug for EvmEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvmEvents").finish_non_exhaustive()
    }
}
