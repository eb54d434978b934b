use grid_batch_settings::{ConfigError, SettingValues};
use grid_batch_webhooks::{AllowedNetwork, AllowedNetworks, DeliveryOptions};

/// How events are delivered to webhooks.
pub(super) fn delivery_options(settings: &SettingValues) -> Result<DeliveryOptions, ConfigError> {
    let networks: Vec<AllowedNetwork> = settings.get_list("webhooks.allow_private")?;
    Ok(DeliveryOptions {
        allowed: AllowedNetworks::new(networks),
        request_timeout: settings.get("testing.webhooks_timeout")?,
        ..DeliveryOptions::default()
    })
}
