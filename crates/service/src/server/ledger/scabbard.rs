use std::{path::Path, sync::Arc};

use grid_batch_nodes::NodePool;
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_scabbard::{NewBatchRules, Scabbard, ScabbardOptions};

use super::{OpenFn, ServerLedger, key_file};
use crate::{Config, StartError};

/// The Scabbard services of a Splinter network.
pub(super) fn prepare(config: &Config) -> Result<OpenFn<'_>, StartError> {
    let nodes = config.ledger.shared_nodes()?;
    let options = ScabbardOptions {
        clock: config.clock(),
        all_nodes: Some(nodes.confirmed_of_all_services()),
        ..options(config)
    };
    let scabbard = Scabbard::new(&token(config)?, nodes.confirmed(), options);
    let scabbard = scabbard.map_err(StartError::part)?;
    let known = config.ledger.known_history.clone();
    let rules = NewBatchRules {
        known: Arc::new(move |service| known.iter().any(|pattern| pattern.matches(service))),
        refuse_unknown: config.ledger.refuse_unknown_history,
    };
    Ok(Box::new(move |store| {
        let scabbard = scabbard
            .with_commit_history(Arc::new(store.clone()))
            .with_service_history(Arc::new(store.clone()), rules);
        Ok(ServerLedger::new(Arc::new(scabbard)))
    }))
}

/// A client that only asks questions of the nodes of a Scabbard ledger, also of nodes that have not confirmed it.
pub(in crate::server) fn scabbard_client(config: &Config) -> Result<Scabbard, StartError> {
    let nodes = Arc::new(NodePool::new(config.ledger.nodes()));
    Scabbard::new(&token(config)?, nodes, options(config)).map_err(StartError::part)
}

fn options(config: &Config) -> ScabbardOptions {
    ScabbardOptions {
        http: config.ledger.http.clone(),
        websocket: config.ledger.socket.clone(),
        connections: config.poll.connections,
        late_arrival_limit: config.ledger.late_arrival_limit,
        coordinator_timeout: config.ledger.coordinator_timeout,
        peers: config.ledger.peers.clone(),
        ..ScabbardOptions::default()
    }
}

/// Authorizes the server to the nodes.
fn token(config: &Config) -> Result<CylinderToken, StartError> {
    Ok(CylinderToken::new(&signing_key(config.ledger.key_file.as_deref())?))
}

/// The key that authenticates the server to the ledger.
fn signing_key(file: Option<&Path>) -> Result<SigningKey, StartError> {
    let Some(file) = file else {
        return Err(StartError::Missing {
            name: "ledger.key_file",
            rule: "scabbard authenticates its clients: it must be a file with a secret key of 64 \
                   hex digits",
        });
    };
    let text = key_file::read("key file", file)?;
    text.trim().parse().map_err(|error| key_file::unusable("key file", file, error))
}
