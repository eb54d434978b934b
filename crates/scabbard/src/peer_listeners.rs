//! The event websockets at the other nodes of circuits.
//!
//! They are independent of the stream from the node to which batches are sent. When that node is killed, they have seen
//! everything since before the batch was sent.

use std::{
    collections::HashMap,
    future::ready,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use futures_util::{
    TryStreamExt,
    future::{join_all, select},
};
use grid_batch_core::{BatchError, PeerService, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_http::origin;
use grid_batch_support::{Backoff, Delays, lock, rng};
use log::{info, warn};
use tokio::{
    pin, spawn,
    sync::watch,
    time::{Instant, sleep},
};

use crate::{context::ScabbardContext, events::ServiceEventStream, observed_nodes::EventSource};

/// The services whose peers are listened to.
#[derive(Default)]
pub(crate) struct PeerListeners(Mutex<HashMap<ServiceId, Weak<Demand>>>);

/// Each subscription to a service holds a receiver. The value is the number of subscriptions so far.
type Demand = watch::Sender<u64>;

impl PeerListeners {
    /// The adapter listens to peers for at least this long after the last subscription to the service.
    const KEEP: Duration = Duration::from_mins(10);
    const BACKOFF: Backoff =
        Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(2) };

    /// A stream that was connected for this long resets the delays when it breaks.
    const STABLE_AFTER: Duration = Duration::from_mins(1);

    /// Listens to the service's peers, if it has any, until some time after the result is dropped.
    pub(crate) fn listen(
        context: &Arc<ScabbardContext>,
        scope: &ServiceScopeId,
    ) -> Option<watch::Receiver<u64>> {
        if context.peers_of(scope).is_empty() {
            return None;
        }
        let mut listeners = lock(&context.peer_listeners.0);
        // A task ends with its runtime.
        listeners.retain(|_, demand| demand.strong_count() > 0);
        let demand = listeners.get(scope.service_id()).and_then(Weak::upgrade);
        let demand = demand.unwrap_or_else(|| {
            context.state_roots_may_differ(scope);
            let demand = Arc::<Demand>::default();
            listeners.insert(scope.service_id().clone(), Arc::downgrade(&demand));
            spawn(listen(Arc::clone(context), scope.clone(), Arc::clone(&demand)));
            demand
        });
        demand.send_modify(|subscriptions| *subscriptions += 1);
        Some(demand.subscribe())
    }
}

async fn listen(context: Arc<ScabbardContext>, scope: ServiceScopeId, demand: Arc<Demand>) {
    let peers = context.peers_of(&scope).into_iter().enumerate();
    let listening = join_all(peers.map(|(index, peer)| listen_to_peer(&context, peer, index)));
    let ended = demand_ended(&demand);
    pin!(listening, ended);
    select(listening, ended).await;
}

async fn demand_ended(demand: &Demand) {
    loop {
        demand.closed().await;
        let subscriptions = *demand.borrow();
        sleep(PeerListeners::KEEP).await;
        if demand.is_closed() && *demand.borrow() == subscriptions {
            return;
        }
    }
}

async fn listen_to_peer(context: &Arc<ScabbardContext>, peer: &PeerService, index: usize) {
    let mut delays = Delays::new(PeerListeners::BACKOFF, rng(None));
    let mut failures: u64 = 0;
    let PeerService { service, peer: id, url } = peer;
    let (source, node) = (EventSource::Peer(index), origin(url));
    loop {
        let opened = ServiceEventStream::open(context, source, url, id, service).await;
        let opened_at = Instant::now();
        let error = match opened {
            Ok(events) => {
                if failures > 0 {
                    info!(service:%, node:%, failures; "events of a peer connected again");
                }
                failures = 0;
                read_to_end(events).await
            }
            Err(error) => error.into(),
        };
        if opened_at.elapsed() >= PeerListeners::STABLE_AFTER {
            delays.reset();
        }
        if failures == 0 {
            warn!(
                service:%, node:%, error:%;
                "events of a peer lost, and its websocket is opened again; if the service's own node \
                 is killed meanwhile, its batches may need an operator"
            );
        }
        failures += 1;
        sleep(delays.next_delay()).await;
    }
}

async fn read_to_end(events: ServiceEventStream) -> BatchError {
    let ended = events.try_for_each(|_| ready(Ok(()))).await;
    ended.err().unwrap_or_else(|| BatchError::Unavailable("the stream ended".to_owned()))
}
