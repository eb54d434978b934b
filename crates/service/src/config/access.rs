use grid_batch_api::{AccessMode, AccessOptions, HealthAccess, KeyGrant, Rate, RateLimits};

use super::{
    ConfigError, ListenConfig, layers::Layers, ledger_type::ConfiguredType, value::SettingValue,
};

/// Who may use the HTTP interface, and how much.
#[derive(Debug, Clone)]
pub struct AccessConfig {
    /// Which requests need a token, and what keys may do.
    pub options: AccessOptions,
    /// Whether other machines may use the interface without a token.
    pub allow_anonymous: bool,
    /// How many batches clients and services may get stored in a second.
    pub rates: RateLimits,
}

/// Empty for what is usual for the ledger.
impl SettingValue for Option<AccessMode> {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(None),
            "none" => Ok(Some(AccessMode::Open)),
            "ledger_keys" => Ok(Some(AccessMode::LedgerKeys)),
            "tokens" => Ok(Some(AccessMode::Tokens)),
            _ => Err("it must be \"none\", \"ledger_keys\" or \"tokens\"".to_owned()),
        }
    }
}

/// A key, with what it may do. A public key is no secret.
struct Key(KeyGrant);

impl SettingValue for Key {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: grid_batch_api::KeyGrantError| error.to_string())
    }
}

impl SettingValue for Option<Rate> {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|error| format!("it must be empty, or a rate: {error}")),
        }
    }
}

impl AccessConfig {
    pub(super) fn from_layers(
        layers: &Layers,
        listen: &ListenConfig,
        ledger_type: Option<&ConfiguredType>,
    ) -> Result<Self, ConfigError> {
        let keys = layers.get::<Vec<Key>>("access.keys")?.into_iter().map(|key| key.0).collect();
        let checks_keys = ledger_type.is_some_and(|it| it.facts.checks_keys);
        let usual = if checks_keys { AccessMode::LedgerKeys } else { AccessMode::Open };
        let mode = layers.get::<Option<AccessMode>>("access.mode")?.unwrap_or(usual);
        if mode == AccessMode::LedgerKeys && !checks_keys {
            let kind = ledger_type.map_or("not set", |it| it.ledger.name);
            let rule = format!(
                "access.mode is ledger_keys, which needs a ledger whose nodes tell what the key of a client may do; \
                 ledger.kind is {kind}, so set it to \"tokens\""
            );
            return Err(layers.conflict("access.mode", rule));
        }
        let config = Self {
            options: AccessOptions {
                mode,
                health: layers.get::<HealthAccess>("access.health")?,
                keys,
            },
            allow_anonymous: layers.get("access.allow_anonymous")?,
            rates: RateLimits {
                client: layers.get("intake.rate_of_client")?,
                service: layers.get("intake.rate_of_service")?,
                ..RateLimits::default()
            },
        };
        config.check(layers, listen)?;
        Ok(config)
    }

    fn check(&self, layers: &Layers, listen: &ListenConfig) -> Result<(), ConfigError> {
        let mode = self.options.mode;
        if mode == AccessMode::Tokens {
            return Ok(());
        }
        if mode == AccessMode::Open && !self.options.keys.is_empty() {
            let rule =
                "access.keys has no effect, because access.mode is none; set it to \"tokens\"";
            return Err(layers.conflict("access.keys", rule.to_owned()));
        }
        let exposed = listen.addresses.iter().find(|address| address.is_reached_from_elsewhere());
        match exposed {
            Some(address) if !self.allow_anonymous => {
                let rule = format!(
                    "{address} is not a loopback address; set access.mode to \"tokens\" and create a token \
                     for each client with `grid-batch token create`, or listen on 127.0.0.1 or at a Unix \
                     socket behind a proxy that authorizes clients. Only if everyone who reaches the server \
                     may do everything, set access.allow_anonymous to true"
                );
                Err(layers.conflict("listen", rule))
            }
            _ => Ok(()),
        }
    }
}
