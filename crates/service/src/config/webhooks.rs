use std::num::NonZero;

use grid_batch_settings::{ConfigError, SettingValues};
use grid_batch_webhooks::{AllowedNetwork, AllowedNetworks, DeliveryOptions};

/// How events are delivered to webhooks.
pub(super) fn delivery_options(settings: &SettingValues) -> Result<DeliveryOptions, ConfigError> {
    let networks: Vec<AllowedNetwork> = settings.get_list("webhooks.allow_private")?;
    let most_attempts: NonZero<u32> = settings.get("webhooks.attempts")?;
    Ok(DeliveryOptions {
        allowed: AllowedNetworks::new(networks),
        request_timeout: settings.get("webhooks.timeout")?,
        most_attempts: most_attempts.get(),
        ..DeliveryOptions::default()
    })
}
