use std::num::NonZero;

use grid_batch_api::{HostName, SignerPattern, WebOrigin};
use grid_batch_settings::{ConfigError, SettingValues};
use grid_batch_store::IntakeLimits;
use grid_batch_support::ServicePattern;

/// Which requests are answered, and which batches are accepted. The limits of what is stored are among
/// the options of the store.
#[derive(Debug, Clone)]
pub struct IntakeConfig {
    /// Host names of the server, besides those of the machine itself.
    pub allowed_hosts: Vec<HostName>,
    /// Origins of web pages that may use the server.
    pub allowed_origins: Vec<WebOrigin>,
    /// Have a node answer the other requests of the ledger's clients.
    pub pass_through: bool,
    /// Services whose batches are accepted; empty for all.
    pub services: Vec<ServicePattern>,
    /// Signers whose batches are accepted; empty for all.
    pub signers: Vec<SignerPattern>,
}

impl IntakeConfig {
    pub(super) fn from_settings(settings: &SettingValues) -> Result<Self, ConfigError> {
        Ok(Self {
            allowed_hosts: settings.get_list("http.allowed_hosts")?,
            allowed_origins: settings.get_list("http.allowed_origins")?,
            pass_through: settings.get("http.pass_through")?,
            services: settings.get_list("intake.services")?,
            signers: settings.get_list("intake.signers")?,
        })
    }
}

/// Batches that miss transactions wait without end. One signer may fill this part of a queue with them.
const PART_OF_ONE_SIGNER: u64 = 10;

/// All signers together leave the rest to batches that can be sent.
const PART_OF_ALL_SIGNERS: u64 = 2;

pub(super) fn intake_limits(settings: &SettingValues) -> Result<IntakeLimits, ConfigError> {
    let limit = |name| settings.get::<NonZero<u64>>(name).map(NonZero::get);
    let open_batches = limit("intake.open_batches")?;
    Ok(IntakeLimits {
        open_batches,
        missing_transactions_of_signer: (open_batches / PART_OF_ONE_SIGNER).max(1),
        incomplete_batches: (open_batches / PART_OF_ALL_SIGNERS).max(1),
        open_batches_of_client: settings
            .get::<Option<NonZero<u64>>>("intake.open_batches_of_client")?
            .map_or(u64::MAX, NonZero::get),
        new_services_per_signer: limit("intake.new_services_per_signer")?,
        new_services: limit("intake.new_services")?,
    })
}
