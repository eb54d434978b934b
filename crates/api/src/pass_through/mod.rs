//! Requests of clients of a ledger that a node of it answers, and what is answered from here because the
//! node does not have it yet.

mod error;
mod forward;
mod forwarded_statuses;
mod open_resource;
mod socket;

use std::sync::Arc;

use grid_batch_core::ledger::Ledger;
use grid_batch_core::queries::BatchQueryStore;
use tokio::sync::Semaphore;

use crate::state::ApiState;

pub(crate) use error::ForwardError;

/// How many requests wait for a node at once; more wait for those. A node has few threads for its clients.
const CONCURRENT: usize = 16;
/// How many answers of nodes are read at once, some by slow clients. Each keeps a connection.
const ANSWERS: usize = 128;

/// Has requests answered by a node, if the ledger's interface is passed through.
pub(crate) struct Forwarding {
    api: Arc<ApiState>,
    to: Option<Arc<dyn Ledger>>,
    store: Arc<dyn BatchQueryStore>,
    places: Semaphore,
    answers: Arc<Semaphore>,
}

impl Forwarding {
    pub(crate) fn new(
        api: &Arc<ApiState>,
        to: Option<Arc<dyn Ledger>>,
        store: &Arc<dyn BatchQueryStore>,
    ) -> Self {
        let (api, store) = (Arc::clone(api), Arc::clone(store));
        let (places, answers) = (Semaphore::new(CONCURRENT), Arc::new(Semaphore::new(ANSWERS)));
        Self { api, to, store, places, answers }
    }
}
