//! The HTTP interface over a database in this process, for commands: without a listener, a ledger or the parts that
//! submit.

use std::{fmt, sync::Arc};

use grid_batch_api::{ApiBuilder, InProcessAnswer, InProcessApi};
use grid_batch_client::{ClientError, ClientRequest, HttpResponse, Transport};
use grid_batch_store::Store;

use super::{StartError, maintenance::DatabaseMaintenance};
use crate::Config;

/// Answers the requests of a command from a database, as a server of it would. What only a running server knows, such
/// as which nodes answer, is not in the answers.
pub struct DatabaseInterface {
    api: InProcessApi,
    name: String,
}

impl DatabaseInterface {
    /// The interface over the database of a configuration. The log of what operators did names this user of the machine.
    pub fn new(config: Config, store: &Store, user: String) -> Result<Self, StartError> {
        let (shared, pauses) = (Arc::new(store.clone()), store.clone());
        let name = config.general.database.to_string();
        let allowed = config.delivery_options().allowed;
        let maintenance = DatabaseMaintenance { config, store: store.clone() };
        let api = ApiBuilder::new(shared.clone(), shared.clone())
            .with_reads()
            .with_pauses(move |services| Ok(pauses.pauses(services)?))
            .with_events(shared.clone())
            .with_webhooks(shared.clone(), allowed)
            .with_tokens(shared.clone())
            .with_maintenance(Arc::new(maintenance))
            .with_command_user(shared.clone(), user)
            .with_clock(Arc::new(store.clock().clone()));
        #[cfg(feature = "evm")]
        let api = api
            .with_withdrawals(shared, Arc::new(grid_batch_evm::PoolRules::default()))
            .with_calls(Arc::new(grid_batch_evm::AccountRules::default()));
        Ok(Self { api: api.build().map_err(StartError::part)?.in_process()?, name })
    }
}

impl Transport for DatabaseInterface {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn send(&self, request: ClientRequest<'_>) -> Result<HttpResponse, ClientError> {
        // Only commands that ask a server send a key.
        let ClientRequest { method, target, content_type, body, idempotency_key: _ } = request;
        let answer = self.api.answer(method, target, content_type, body);
        let InProcessAnswer { status, body } = answer.map_err(ClientError::InProcess)?;
        Ok(HttpResponse { status, retry_after: None, body: Ok(body) })
    }
}

impl fmt::Debug for DatabaseInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseInterface").field("name", &self.name).finish_non_exhaustive()
    }
}
