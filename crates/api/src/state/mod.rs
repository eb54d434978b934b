//! What all requests share.

mod actors;
mod awaited_batches;
mod blocking_work;
mod database_watch;
mod listeners;
mod open_connection;
mod shared_store;
mod stored_callback;

use std::{net::SocketAddr, sync::Arc};

use axum::{extract::Request, http::request::Parts};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::{BatchResult, Clock};
use grid_batch_support::Shutdown;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::{
    ApiOptions,
    http::{
        ApiError, BodyReader, Links, MemoryBudget, MemoryReservation, RequestError,
        json_content_type, read_json_object, read_params,
    },
    parts::ApiParts,
    rate_limits::Rates,
};

pub(crate) use actors::{ActionBody, ActionRequest, Actors, action_bodies};
pub use awaited_batches::AwaitedBatches;
pub(crate) use awaited_batches::EndWait;
pub(crate) use blocking_work::{StoreAccess, run_blocking};
pub(crate) use database_watch::{DatabaseCheck, DatabaseWatch};
pub(crate) use listeners::{Listeners, WaitingListener};
pub(crate) use open_connection::OpenConnection;
pub(crate) use shared_store::{SharedStore, StoreContext};
pub(crate) use stored_callback::StoredCallback;

/// How many requests read from the store at once. A store has as many connections by default.
const READS: usize = 8;
/// The longest body of a request that is a JSON object about one thing.
const LONGEST_JSON: usize = 64 * 1024;

/// The state that the handlers of all paths share.
pub(crate) struct ApiState {
    pub(crate) options: ApiOptions,
    pub(crate) actors: Actors,
    pub(crate) local_addr: SocketAddr,
    pub(crate) bodies: BodyReader,
    /// Runs what reads from the store.
    pub(crate) reads: StoreAccess,
    pub(crate) database: DatabaseWatch,
    /// Limits how many requests wait for a status at once.
    pub(crate) status_waiters: Semaphore,
    pub(crate) awaited: AwaitedBatches,
    pub(crate) shutdown: Shutdown,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) rates: Arc<Rates>,
    pub(crate) listeners: Arc<Listeners>,
}

impl ApiState {
    pub(crate) fn new(parts: &ApiParts, local_addr: SocketAddr, shutdown: Shutdown) -> Self {
        let options = parts.options.clone();
        let database = DatabaseWatch::new(Arc::clone(&parts.database_check));
        let budget = MemoryBudget::new(options.memory_limit);
        Self {
            actors: parts.actors.clone(),
            local_addr,
            bodies: BodyReader::new(budget, options.body_timeout),
            reads: StoreAccess::new(READS, database.clone(), ApiError::read_interrupted()),
            database,
            status_waiters: Semaphore::new(options.max_status_waiters),
            awaited: parts.awaited.clone(),
            shutdown,
            clock: Arc::clone(&parts.clock),
            rates: Arc::new(Rates::new(parts.rate_limits, Arc::clone(&parts.clock))),
            listeners: Arc::default(),
            options,
        }
    }

    /// Reads a request whose body is a JSON object of the fields of a type.
    pub(crate) async fn read_json<T: DeserializeOwned>(
        &self,
        request: Request,
    ) -> Result<(Parts, T), ApiError> {
        let (request, value, _) = self.read_long_json(request, LONGEST_JSON).await?;
        Ok((request, value))
    }

    /// Reads a body of up to `limit` bytes. The memory is reserved as long as the caller keeps the reservation.
    pub(crate) async fn read_long_json<T: DeserializeOwned>(
        &self,
        request: Request,
        limit: usize,
    ) -> Result<(Parts, T, MemoryReservation), ApiError> {
        let (request, body) = request.into_parts();
        let body = self.bodies.read(&request.headers, body, limit).await?;
        json_content_type(&request.headers).map_err(RequestError::JsonContentType)?;
        Ok((request, read_json_object(&body.bytes)?, body.reservation))
    }

    /// Reads a request of an operator: who asks and why, the rest of its body, and its parameters.
    pub(crate) async fn read_action<B: ActionBody, P: DeserializeOwned>(
        &self,
        request: Request,
    ) -> Result<(OperatorRequest, B, P), ApiError> {
        let (request, mut body): (_, B) = self.read_json(request).await?;
        let params = read_params(&request)?;
        let ActionRequest { reason, dry_run } = body.take_action();
        let asked = self.actors.request(&request, reason, dry_run)?;
        Ok((asked, body, params))
    }

    /// Runs what reads from a store.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> BatchResult<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.reads.run(move || read().map_err(ApiError::read_failed)).await
    }

    /// A store, to which at most this many requests write at once.
    pub(crate) fn store<S: ?Sized>(&self, store: Arc<S>, writes: usize) -> SharedStore<S> {
        let writes = StoreAccess::new(writes, self.database.clone(), ApiError::write_interrupted());
        SharedStore { store, reads: self.reads.clone(), writes }
    }

    /// The URLs in the answer to a request.
    pub(crate) fn links<'a>(&self, request: &'a Parts) -> Links<'a> {
        Links::new(request, self.local_addr)
    }
}
