use grid_batch_api::{AccessMode, AccessOptions, KeyGrant, Rate, RateLimits};
use grid_batch_settings::{ConfigError, SettingValues};

use super::{ListenConfig, ledger_type::ConfiguredType};

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

fn parse_rate(text: &str) -> Result<Option<Rate>, String> {
    match text {
        "" => Ok(None),
        text => {
            text.parse().map(Some).map_err(|error| format!("it must be empty, or a rate: {error}"))
        }
    }
}

impl AccessConfig {
    pub(super) fn from_settings(
        settings: &SettingValues,
        listen: &ListenConfig,
        ledger_type: Option<&ConfiguredType>,
    ) -> Result<Self, ConfigError> {
        let keys = settings.get_list::<KeyGrant>("access.keys")?;
        let checks_keys = ledger_type.is_some_and(|it| it.facts.checks_keys);
        let usual = if checks_keys { AccessMode::LedgerKeys } else { AccessMode::Open };
        let mode = settings.get_optional("access.mode")?.unwrap_or(usual);
        if mode == AccessMode::LedgerKeys && !checks_keys {
            let kind = ledger_type.map_or("not set", |it| it.ledger.name);
            let rule = format!(
                "access.mode is ledger_keys, which needs a ledger whose nodes tell what the key of a client may do; \
                 ledger.kind is {kind}, so set it to \"tokens\""
            );
            return Err(settings.conflict("access.mode", rule));
        }
        let config = Self {
            options: AccessOptions { mode, health: settings.get_parsed("access.health")?, keys },
            allow_anonymous: settings.get("access.allow_anonymous")?,
            rates: RateLimits {
                client: settings.get_with("intake.rate_of_client", parse_rate)?,
                service: settings.get_with("intake.rate_of_service", parse_rate)?,
                ..RateLimits::default()
            },
        };
        config.check(settings, listen)?;
        Ok(config)
    }

    fn check(&self, settings: &SettingValues, listen: &ListenConfig) -> Result<(), ConfigError> {
        let mode = self.options.mode;
        if mode == AccessMode::Tokens {
            return Ok(());
        }
        if mode == AccessMode::Open && !self.options.keys.is_empty() {
            let rule =
                "access.keys has no effect, because access.mode is none; set it to \"tokens\"";
            return Err(settings.conflict("access.keys", rule.to_owned()));
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
                Err(settings.conflict("listen", rule))
            }
            _ => Ok(()),
        }
    }
}
