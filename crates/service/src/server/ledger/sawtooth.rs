use std::sync::Arc;

use grid_batch_core::{GlobalScopeId, ScopeId};
use grid_batch_sawtooth::{SETTINGS, Sawtooth, SawtoothOptions, facts};

use super::{
    OpenFn, ServerLedger, all_nodes,
    built_in::{BuiltIn, IdentityFn, identity_of},
};
use crate::{Config, LedgerType, StartError, config::Adapter};

/// A Sawtooth network.
pub(super) const TYPE: LedgerType = LedgerType {
    settings: SETTINGS,
    check_service_id: |service| GlobalScopeId::from_service_id(service).map(drop),
    ..LedgerType::with_adapter(
        "sawtooth",
        |settings| {
            let late_arrival_limit = settings.get("ledger.late_arrival_limit")?;
            Ok(facts(settings.get("ledger.keeps_order")?, late_arrival_limit))
        },
        Adapter::BuiltIn(BuiltIn { prepare, identity, id: None, service: None }),
    )
};

fn identity(config: &Config) -> Result<IdentityFn, StartError> {
    let options =
        SawtoothOptions { http: config.ledger.http.clone(), ..SawtoothOptions::default() };
    Ok(identity_of(Arc::new(Sawtooth::new(options, all_nodes(config))?)))
}

fn prepare(config: &Config) -> Result<OpenFn<'_>, StartError> {
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
        let sawtooth = if nodes.has_several_shared_nodes() {
            sawtooth.with_several_nodes(Arc::new(store.clone()), urls)
        } else {
            sawtooth
        };
        Ok(ServerLedger::new(Arc::new(sawtooth)))
    }))
}
