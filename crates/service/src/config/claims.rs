use std::time::Duration;

use grid_batch_settings::{ConfigError, SettingValues};

use super::{optional, times::Times};

/// How services are divided among instances.
#[derive(Debug, Clone)]
pub struct ClaimsConfig {
    /// The instance's name, if it has one.
    pub name: Option<String>,
    /// How long after its last renewal an instance loses the services that have no batch with a
    /// submitter.
    pub idle_expiry: Duration,
    /// How long after its last renewal an instance loses all its services.
    pub full_expiry: Duration,
    /// Take no more than an equal share of the services.
    pub share: bool,
}

impl ClaimsConfig {
    pub(super) fn from_settings(
        settings: &SettingValues,
        times: &Times,
    ) -> Result<Self, ConfigError> {
        let idle_expiry: Duration = settings.get("claims.idle_expiry")?;
        // Twice the limit of a submission is needed. The rest is for slow renewals.
        let usual = idle_expiry + times.total_limit * 5 / 2;
        let full_expiry: Option<Duration> = settings.get("claims.full_expiry")?;
        Ok(Self {
            name: optional(settings.get("claims.name")?),
            idle_expiry,
            full_expiry: full_expiry.unwrap_or(usual),
            share: settings.get("claims.share")?,
        })
    }
}
