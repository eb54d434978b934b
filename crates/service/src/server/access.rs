//! Who may use the interface, by the settings and the tokens in the database.

use std::{sync::Arc, time::Duration};

use grid_batch_api::{AccessControl, AccessMode, StoredTokens};
use grid_batch_store::Store;
use grid_batch_support::{Job, Jobs};
use log::{info, warn};

use crate::Config;

/// A token that is created or revoked is so on all instances after this time.
const INTERVAL: Duration = Duration::from_secs(1);

/// Reads the tokens, and starts the job that reads them again and again, if requests need tokens.
pub(super) fn start(config: &Config, store: &Store, jobs: &Jobs) -> (AccessControl, Option<Job>) {
    let control = AccessControl::new(config.access_options(), config.clock());
    info!(access_mode = AccessInForce::of(config).text; "access to the HTTP interface");
    if config.access_mode() != AccessMode::Tokens {
        return (control, None);
    }
    let mut tokens = StoredTokens::new(control.clone(), Arc::new(store.clone()));
    match tokens.read() {
        Ok(0) if config.access.keys.is_empty() => warn!(
            "requests need a token, and there is none; create one with `grid-batch token create --name NAME --scope \
             submit,read --reason TEXT`"
        ),
        Ok(_) => {}
        Err(error) => warn!(error:%; "the tokens cannot be read"),
    }
    (control, Some(jobs.every("access", INTERVAL, move || tokens.refresh())))
}

/// Which clients may submit batches and read, by `access.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessInForce {
    /// For logs and reports.
    pub text: &'static str,
    /// What to do, if clients can use a ledger that would refuse them.
    pub advice: Option<&'static str>,
}

impl AccessInForce {
    /// What these settings mean.
    pub fn of(config: &Config) -> Self {
        let checks_keys = config.checks_keys();
        let mode = config.access_mode();
        let text = match mode {
            AccessMode::Open if checks_keys => {
                "none; the server submits, with its own key, the batches of everyone who reaches it"
            }
            AccessMode::Open => "none; everyone who reaches the server may do everything",
            AccessMode::LedgerKeys if config.access.keys.is_empty() => {
                "ledger_keys; batches are accepted from clients whose key the node of the service accepts"
            }
            AccessMode::LedgerKeys => {
                "ledger_keys; batches are accepted from clients whose key the node of the service accepts, or \
                 that access.keys lists"
            }
            AccessMode::Tokens => "tokens; each request needs a token",
        };
        let is_open = mode == AccessMode::Open && checks_keys;
        let advice = is_open.then_some(
            "remove access.mode from the settings: then batches are accepted only from clients whose key the node accepts",
        );
        Self { text, advice }
    }
}
