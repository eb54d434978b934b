use std::time::Duration;

use grid_batch_settings::{ConfigError, SettingValues};

/// When ended batches are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionConfig {
    /// How long after its end a batch is removed; `None`: never.
    pub after: Option<Duration>,
    /// How often ended batches are looked for.
    pub interval: Duration,
}

impl RetentionConfig {
    pub(super) fn from_settings(settings: &SettingValues) -> Result<Self, ConfigError> {
        Ok(Self {
            after: settings.get("retention.after")?,
            interval: settings.get("testing.retention_interval")?,
        })
    }
}
