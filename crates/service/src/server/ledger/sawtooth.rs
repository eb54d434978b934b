use std::sync::Arc;

use grid_batch_sawtooth::{Sawtooth, SawtoothOptions};

use super::{OpenFn, ServerLedger};
use crate::{Config, StartError};

/// A Sawtooth network.
pub(super) fn prepare(config: &Config) -> Result<OpenFn<'_>, StartError> {
    let nodes = config.ledger.shared_nodes()?;
    let facts = config.ledger.facts.ok_or_else(StartError::no_ledger_kind)?;
    let options = SawtoothOptions {
        http: config.ledger.http.clone(),
        websocket: config.ledger.socket.clone(),
        connections: config.poll.connections,
        keeps_order: facts.keeps_order,
        late_arrival_limit: facts.late_arrival_limit,
        ..SawtoothOptions::default()
    };
    let sawtooth = Sawtooth::new(options, nodes.confirmed())?;
    let urls = &config.ledger.urls;
    Ok(Box::new(move |store| {
        let sawtooth = match nodes.has_several_shared_nodes() {
            true => sawtooth.with_several_nodes(Arc::new(store.clone()), urls),
            false => sawtooth,
        };
        Ok(ServerLedger::new(Arc::new(sawtooth)))
    }))
}
