use std::sync::Arc;

use grid_batch_core::{GlobalScopeId, ScopeId};
use grid_batch_sawtooth::{Sawtooth, SawtoothOptions, SawtoothSettings, facts};

use super::{
    OpenFn, ServerLedger, all_nodes,
    built_in::{BuiltIn, IdentityFn, identity_of},
};
use crate::{Config, LedgerConfig, LedgerType, PollConfig, StartError, config::Adapter};

/// A Sawtooth network.
pub(super) const TYPE: LedgerType = LedgerType {
    settings: &[SawtoothSettings::SETTINGS],
    check_service_id: |service| GlobalScopeId::from_service_id(service).map(drop),
    ..LedgerType::with_adapter(
        "sawtooth",
        |settings| {
            let late_arrival_limit = LedgerConfig::read(settings)?.late_arrival_limit;
            Ok(facts(SawtoothSettings::read(settings)?.keeps_order, late_arrival_limit))
        },
        Adapter::BuiltIn(BuiltIn { prepare, identity, id: None, service: None }),
    )
};

fn identity(config: &Config) -> Result<IdentityFn, StartError> {
    let options = SawtoothOptions { http: config.http_options(), ..SawtoothOptions::default() };
    Ok(identity_of(Arc::new(Sawtooth::new(options, all_nodes(config))?)))
}

fn prepare(config: &Config) -> Result<OpenFn<'_>, StartError> {
    let nodes = config.shared_nodes()?;
    let facts = config.facts().ok_or_else(StartError::no_ledger_kind)?;
    let options = SawtoothOptions {
        http: config.http_options(),
        websocket: config.websocket_options(),
        connections: PollConfig::CONNECTIONS,
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
            sawtooth.with_lists(store.lists().clone())
        };
        Ok(ServerLedger::new(Arc::new(sawtooth)))
    }))
}
