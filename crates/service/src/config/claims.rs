use std::time::Duration;

use super::{ConfigError, layers::Layers, optional};

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
    pub(super) fn from_layers(layers: &Layers) -> Result<Self, ConfigError> {
        Ok(Self {
            name: optional(layers.get("claims.name")?),
            idle_expiry: layers.get("claims.idle_expiry")?,
            full_expiry: layers.get("claims.full_expiry")?,
            share: layers.get("claims.share")?,
        })
    }
}
