use crate::{ConfigError, GivenValue, NodeUrl, Setting, SettingValue, SettingValues};
use grid_batch_core::queue::{AfterInvalid, StrategyKind};
use grid_batch_core::{PeerService, ServiceScopeId};

impl SettingValue for StrategyKind {
    fn parse(text: &str) -> Result<Self, String> {
        let strategy = Self::ALL.into_iter().find(|strategy| strategy.as_str() == text);
        strategy.ok_or_else(|| "it must be \"serial\", \"parallel\" or \"pipeline\"".to_owned())
    }
}

impl SettingValue for AfterInvalid {
    fn parse(text: &str) -> Result<Self, String> {
        let policy = Self::ALL.into_iter().find(|policy| policy.as_str() == text);
        policy.ok_or_else(|| "it must be \"continue\" or \"halt\"".to_owned())
    }
}

/// Services on nodes of their own, with the nodes' URLs.
pub fn nodes_of_services(
    values: &SettingValues,
    setting: &Setting,
) -> Result<Vec<(ServiceScopeId, String)>, ConfigError> {
    let node = |given: &GivenValue| Ok((scope_id(given)?, given.get::<NodeUrl>()?.0));
    values.entries(setting).map(node).collect()
}

/// Services at the other nodes of their circuits.
pub fn peers(values: &SettingValues, setting: &Setting) -> Result<Vec<PeerService>, ConfigError> {
    let mut peers = Vec::new();
    for given in values.entries(setting) {
        let service = scope_id(given)?;
        for PeerSetting(id, url) in given.get::<Vec<PeerSetting>>()? {
            let peer = parse_service(&format!("{}::{id}", service.circuit()));
            let peer = peer.map_err(|rule| given.conflict(format!("{}: {rule}", given.name())))?;
            if peer == service {
                let rule = format!("{service} is its own peer; {}", PeerSetting::RULE);
                return Err(given.conflict(format!("{}: {rule}", given.name())));
            }
            peers.push(PeerService { service: service.clone(), peer, url });
        }
    }
    Ok(peers)
}

/// The id that is the key of this value.
fn scope_id(given: &GivenValue) -> Result<ServiceScopeId, ConfigError> {
    let service = parse_service(given.key.as_deref().unwrap_or_default());
    service.map_err(|rule| given.conflict(format!("{}: {rule}", given.name())))
}

/// The error does not repeat the text, which may be a part of a URL with a password.
fn parse_service(text: &str) -> Result<ServiceScopeId, String> {
    text.parse().map_err(|_| {
        "a service must be circuit::service, both of ASCII letters, digits, '-' and '_'".to_owned()
    })
}

/// The id of a service at another node of its circuit, and the node's URL.
#[derive(Clone, PartialEq, Eq)]
struct PeerSetting(String, String);

impl PeerSetting {
    const RULE: &str = "each item must be ID@URL, where ID is the service's id at the other node, such as \
                        \"gsBB@http://beta:8085\"";
}

impl SettingValue for PeerSetting {
    fn parse(text: &str) -> Result<Self, String> {
        let (id, url) = text.split_once('@').ok_or_else(|| Self::RULE.to_owned())?;
        let id = id.trim();
        if id.contains(':') {
            return Err(Self::RULE.to_owned());
        }
        Ok(Self(id.to_owned(), NodeUrl::parse(url.trim())?.0))
    }

    fn redacted(text: &str) -> String {
        NodeUrl::redacted(text)
    }
}
