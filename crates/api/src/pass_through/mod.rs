//! Requests of clients of a ledger that a node of it answers, and what is answered from here because the
//! node does not have it yet.

mod error;
mod forward;
mod forwarded_statuses;
mod open_resource;
mod socket;

use std::{pin::Pin, sync::Arc};

use axum::{extract::Request, response::Response};
use grid_batch_core::ledger::Ledger;
use grid_batch_core::queries::BatchQueryStore;
use tokio::sync::Semaphore;

use crate::{http::ApiError, state::ApiState};

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

type Answer = Pin<Box<dyn Future<Output = Result<Response, ApiError>> + Send>>;

/// A handler for requests that nothing here serves. `refused` is the answer to those that the ledger does
/// not serve either.
pub(crate) fn fallback(
    nodes: &Arc<Forwarding>,
    refused: fn(&Request) -> ApiError,
) -> impl Fn(Request) -> Answer + Clone + Send + Sync + 'static {
    let nodes = Arc::clone(nodes);
    move |request| {
        let nodes = Arc::clone(&nodes);
        Box::pin(async move {
            let refused = refused(&request);
            nodes.answer(request, refused).await
        })
    }
}
