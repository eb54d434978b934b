use std::time::Duration;

use super::{ConfigError, layers::Layers};

/// When ended batches are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionConfig {
    /// How long after its end a batch is removed; `None`: never.
    pub after: Option<Duration>,
    /// How often ended batches are looked for.
    pub interval: Duration,
}

impl RetentionConfig {
    pub(super) fn from_layers(layers: &Layers) -> Result<Self, ConfigError> {
        Ok(Self {
            after: layers.get("retention.after")?,
            interval: layers.get("retention.interval")?,
        })
    }
}
