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

pub(super) fn intake_limits(settings: &SettingValues) -> Result<IntakeLimits, ConfigError> {
    let limit = |name| {
        let limit: Option<NonZero<u64>> = settings.get(name)?;
        Ok::<_, ConfigError>(limit.map(NonZero::get))
    };
    let open_batches = settings.get::<NonZero<u64>>("intake.open_batches")?.get();
    let limits = IntakeLimits::of_queue(open_batches);
    Ok(IntakeLimits {
        open_batches_of_client: limit("intake.open_batches_of_client")?.unwrap_or(u64::MAX),
        new_services_per_signer: limit("testing.new_services_per_signer")?
            .unwrap_or(limits.new_services_per_signer),
        new_services: limit("testing.new_services")?.unwrap_or(limits.new_services),
        ..limits
    })
}
