//! The event websockets at the other nodes of circuits.
//!
//! They do not depend on the stream of the node that batches are sent to: when that node is killed,
//! they are what has seen everything since before the batch was sent.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{join_all, select},
};
use grid_batch_core::{BatchError, BatchResult, PeerService, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_http::origin;
use grid_batch_support::{Backoff, lock, rng};
use log::{info, warn};
use tokio::{
    pin, spawn,
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::{context::ScabbardContext, events::ServiceEventStream, observed_nodes::EventSource};

/// The services whose peers are listened to.
#[derive(Default)]
pub(crate) struct PeerListeners(Mutex<HashMap<ServiceId, PeerListener>>);

struct PeerListener {
    demand: Arc<Demand>,
    task: JoinHandle<()>,
}

impl PeerListeners {
    /// The peers are listened to for this long after the last subscription to the service.
    const KEEP: Duration = Duration::from_mins(10);
    const BACKOFF: Backoff =
        Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(2) };

    /// A stream that was connected for this long resets the delays when it breaks.
    const STABLE_AFTER: Duration = Duration::from_mins(1);

    /// Listens to the service's peers, until the result was dropped and some time has passed.
    pub(crate) fn listen(context: &Arc<ScabbardContext>, scope: &ServiceScopeId) -> ListenedPeers {
        if context.peers_of(scope).is_empty() {
            return ListenedPeers::new(&Arc::default());
        }
        let listeners = &context.peer_listeners.0;
        let mut listeners = lock(listeners);
        // A task ends with its runtime.
        listeners.retain(|_, listener| !listener.task.is_finished());
        let start = || {
            context.state_roots_may_differ(scope);
            let demand = Arc::<Demand>::default();
            let task = spawn(listen(Arc::clone(context), scope.clone(), Arc::clone(&demand)));
            PeerListener { demand, task }
        };
        let listener = listeners.entry(scope.service_id().clone()).or_insert_with(start);
        ListenedPeers::new(&listener.demand)
    }
}

/// The subscriptions that need the events of peers.
struct Demand {
    subscriptions: AtomicUsize,
    last_needed: Mutex<Instant>,
}

impl Default for Demand {
    fn default() -> Self {
        Self { subscriptions: AtomicUsize::new(0), last_needed: Mutex::new(Instant::now()) }
    }
}

impl Demand {
    fn touch(&self) {
        *lock(&self.last_needed) = Instant::now();
    }

    async fn ended(&self) {
        loop {
            if self.subscriptions.load(Ordering::Relaxed) > 0 {
                self.touch();
            }
            let last = *lock(&self.last_needed);
            match PeerListeners::KEEP.checked_sub(last.elapsed()) {
                Some(left) => sleep(left).await,
                None => return,
            }
        }
    }
}

/// The peers of a service are listened to while this exists.
pub(crate) struct ListenedPeers(Arc<Demand>);

impl ListenedPeers {
    fn new(demand: &Arc<Demand>) -> Self {
        demand.subscriptions.fetch_add(1, Ordering::Relaxed);
        demand.touch();
        Self(Arc::clone(demand))
    }
}

impl Drop for ListenedPeers {
    fn drop(&mut self) {
        self.0.touch();
        self.0.subscriptions.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn listen(context: Arc<ScabbardContext>, scope: ServiceScopeId, demand: Arc<Demand>) {
    let peers = context.peers_of(&scope).into_iter().enumerate();
    let listening = join_all(peers.map(|(index, peer)| listen_to_peer(&context, peer, index)));
    let ended = demand.ended();
    pin!(listening, ended);
    select(listening, ended).await;
}

async fn listen_to_peer(context: &Arc<ScabbardContext>, peer: &PeerService, index: usize) {
    let mut delays = PeerListeners::BACKOFF.delays(rng(None));
    let mut failures: u64 = 0;
    let PeerService { service, peer: id, url } = peer;
    loop {
        let source = EventSource::Peer(index);
        let error = match ServiceEventStream::open(context, source, url, id, service).await {
            Ok(events) => {
                if failures > 0 {
                    info!(
                        service:% = service, node = origin(url).as_str(), failures = failures;
                        "events of a peer connected again"
                    );
                }
                failures = 0;
                let connected_at = Instant::now();
                let error = read_to_end(events).await;
                if connected_at.elapsed() >= PeerListeners::STABLE_AFTER {
                    delays.reset();
                }
                error
            }
            Err(error) => error.into(),
        };
        if failures == 0 {
            warn!(
                service:% = service, node = origin(url).as_str(), error:% = error;
                "events of a peer lost, and its websocket is opened again; if the service's own node \
                 is killed meanwhile, its batches may need an operator"
            );
        }
        failures += 1;
        sleep(delays.next_delay()).await;
    }
}

async fn read_to_end(mut events: ServiceEventStream) -> BatchError {
    let reading = async {
        while let Some(event) = events.next().await {
            event?;
        }
        Ok(())
    };
    let end: BatchResult<()> = reading.await;
    end.err().unwrap_or_else(|| BatchError::Unavailable("the stream ended".to_owned()))
}
