use std::{path::Path, sync::Arc};

use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_scabbard::{
    LedgerSettings, SETTINGS, Scabbard, ScabbardOptions, ScabbardSettings, facts,
};
use grid_batch_support::{UnusableSecret, read_secret};

use super::{
    OpenFn, ServerLedger, all_nodes,
    built_in::{BuiltIn, IdentityFn, ServiceFn},
};
use crate::{Config, LedgerConfig, LedgerType, PollConfig, StartError, config::Adapter};

/// The Scabbard services of a Splinter network.
pub(super) const TYPE: LedgerType = LedgerType {
    settings: SETTINGS,
    check_settings: |settings| {
        ScabbardSettings::new(settings, &LedgerConfig::late_arrival_limit).map(drop)
    },
    ..LedgerType::with_adapter(
        "scabbard",
        |settings| Ok(facts(LedgerConfig::read(settings)?.late_arrival_limit)),
        Adapter::BuiltIn(BuiltIn { prepare, identity, id: None, service: Some(service) }),
    )
};

/// Scabbard nodes tell nothing that identifies their ledger, so no node is asked.
fn identity(_: &Config) -> Result<IdentityFn, StartError> {
    Ok(Box::new(|_| Box::pin(async { Ok(String::new()) })))
}

/// Asks also nodes that have not confirmed their ledger.
fn service(config: &Config) -> Result<ServiceFn, StartError> {
    let settings = settings(config)?;
    let scabbard = Scabbard::new(&token(&settings)?, all_nodes(config), options(config, &settings));
    let scabbard = Arc::new(scabbard.map_err(StartError::part)?);
    Ok(Box::new(move |url, service| {
        let scabbard = Arc::clone(&scabbard);
        Box::pin(async move { scabbard.is_service_at(&url, &service).await })
    }))
}

fn settings(config: &Config) -> Result<ScabbardSettings, StartError> {
    let late_arrival_limit = &LedgerConfig::late_arrival_limit;
    ScabbardSettings::new(&config.settings, late_arrival_limit).map_err(StartError::part)
}

fn prepare(config: &Config) -> Result<OpenFn<'_>, StartError> {
    let settings = settings(config)?;
    let nodes = config.shared_nodes()?;
    let options = ScabbardOptions { clock: config.clock(), ..options(config, &settings) };
    let scabbard = Scabbard::new(&token(&settings)?, nodes.confirmed(), options);
    let scabbard = scabbard.map_err(StartError::part)?;
    let rules = settings.services.unknown_history;
    Ok(Box::new(move |store| {
        let scabbard = scabbard.with_commit_history(Arc::new(store.clone()), rules);
        Ok(ServerLedger::new(Arc::new(scabbard)))
    }))
}

fn options(config: &Config, settings: &ScabbardSettings) -> ScabbardOptions {
    ScabbardOptions {
        http: config.http_options(),
        websocket: config.websocket_options(),
        connections: PollConfig::CONNECTIONS,
        late_arrival_limit: config.ledger.late_arrival_limit,
        coordinator_timeout: settings.ledger.coordinator_timeout,
        peers: config.services.peers.clone(),
        ..ScabbardOptions::default()
    }
}

/// Authorizes the server to the nodes.
fn token(settings: &ScabbardSettings) -> Result<CylinderToken, StartError> {
    Ok(CylinderToken::new(&signing_key(settings.ledger.key_file.as_deref())?))
}

/// The key that authenticates the server to the ledger.
fn signing_key(file: Option<&Path>) -> Result<SigningKey, StartError> {
    let Some(file) = file else {
        return Err(StartError::Missing {
            name: LedgerSettings::key_file.name,
            rule: "scabbard authenticates its clients: it must be a file with a secret key of 64 \
                   hex digits",
        });
    };
    let text = read_secret("key file", file)?;
    let key = text.trim().parse();
    Ok(key.map_err(|error| UnusableSecret::in_file("key file", file, error))?)
}
