use std::num::NonZero;

use grid_batch_webhooks::{AllowedNetwork, AllowedNetworks, DeliveryOptions};

use super::{ConfigError, layers::Layers};

/// How events are delivered to webhooks.
pub(super) fn delivery_options(layers: &Layers) -> Result<DeliveryOptions, ConfigError> {
    let networks: Vec<AllowedNetwork> = layers.get("webhooks.allow_private")?;
    let most_attempts: NonZero<u32> = layers.get("webhooks.attempts")?;
    Ok(DeliveryOptions {
        allowed: AllowedNetworks::new(networks),
        request_timeout: layers.get("webhooks.timeout")?,
        most_attempts: most_attempts.get(),
        ..DeliveryOptions::default()
    })
}
