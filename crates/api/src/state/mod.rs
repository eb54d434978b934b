//! What all requests share.

mod actors;
mod awaited_batches;
mod blocking_work;
mod database_watch;
mod listeners;
mod open_connection;
mod stored_callback;

use std::{net::SocketAddr, sync::Arc};

use axum::{extract::Request, http::request::Parts};
use grid_batch_core::Clock;
use grid_batch_support::Shutdown;
use tokio::sync::Semaphore;

use crate::{
    ApiOptions,
    http::{ApiError, BodyReader, JsonObject, MemoryBudget, RequestError, json_content_type},
    rate_limits::Rates,
};

pub(crate) use actors::Actors;
pub use awaited_batches::AwaitedBatches;
pub(crate) use awaited_batches::EndWait;
pub(crate) use blocking_work::{StoreAccess, run_blocking};
pub(crate) use database_watch::{DatabaseCheck, DatabaseWatch};
pub(crate) use listeners::{Listeners, WaitingListener};
pub(crate) use open_connection::OpenConnection;
pub(crate) use stored_callback::StoredCallback;

/// How many requests read from the store at once. A store has as many connections by default.
const READS: usize = 8;
/// The longest body of a request that is a JSON object about one thing.
const LONGEST_JSON: usize = 64 * 1024;

/// The state that the handlers of all paths share.
#[derive(Debug)]
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
    pub(crate) fn new(
        options: ApiOptions,
        local_addr: SocketAddr,
        shutdown: Shutdown,
        clock: Arc<dyn Clock>,
        database: DatabaseWatch,
        rates: Arc<Rates>,
        awaited: AwaitedBatches,
    ) -> Self {
        let budget = MemoryBudget::new(options.memory_limit);
        let bodies = BodyReader::new(budget, options.body_timeout);
        let reads = StoreAccess::new(READS, database.clone(), ApiError::read_interrupted());
        let status_waiters = Semaphore::new(options.max_status_waiters);
        Self {
            options,
            actors: Actors::default(),
            local_addr,
            bodies,
            reads,
            database,
            status_waiters,
            awaited,
            shutdown,
            clock,
            rates,
            listeners: Arc::default(),
        }
    }

    /// Reads a request whose body is a JSON object of the `known` fields.
    pub(crate) async fn read_json(
        &self,
        request: Request,
        known: &'static [&'static str],
    ) -> Result<(Parts, JsonObject), ApiError> {
        self.read_long_json(request, known, LONGEST_JSON).await
    }

    /// The same with up to `limit` bytes.
    pub(crate) async fn read_long_json(
        &self,
        request: Request,
        known: &'static [&'static str],
        limit: usize,
    ) -> Result<(Parts, JsonObject), ApiError> {
        let (request, body) = request.into_parts();
        let body = self.bodies.read(&request.headers, body, limit).await?;
        json_content_type(&request.headers).map_err(RequestError::JsonContentType)?;
        Ok((request, JsonObject::parse(&body.bytes, known)?))
    }
}
