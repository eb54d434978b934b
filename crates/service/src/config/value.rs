//! How values are parsed that only the server has.

use grid_batch_core::{AfterInvalid, PeerService, ServiceId, ServiceScopeId, StrategyKind};
use grid_batch_settings::{NodeUrl, SettingValue};

/// The strategy of this name.
pub(super) fn parse_strategy(text: &str) -> Result<StrategyKind, String> {
    let strategy = StrategyKind::ALL.into_iter().find(|strategy| strategy.as_str() == text);
    strategy.ok_or_else(|| "it must be \"serial\", \"parallel\" or \"pipeline\"".to_owned())
}

/// What happens after an invalid batch, by its name.
pub(super) fn parse_after_invalid(text: &str) -> Result<AfterInvalid, String> {
    let policy = AfterInvalid::ALL.into_iter().find(|policy| policy.as_str() == text);
    policy.ok_or_else(|| "it must be \"continue\" or \"halt\"".to_owned())
}

/// Values for single services.
pub(super) fn parse_of_services<T>(
    text: &str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<Vec<(ServiceId, T)>, String> {
    let items: Vec<String> = Vec::parse(text)?;
    let count = items.len();
    let of_service = |(at, item): (usize, String)| {
        parse_of_service(&item, parse).map_err(|rule| match count {
            1 => rule,
            _ => format!("item {}: {rule}", at + 1),
        })
    };
    items.into_iter().enumerate().map(of_service).collect()
}

fn parse_of_service<T>(
    text: &str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<(ServiceId, T), String> {
    let item = || "each item must be SERVICE=VALUE".to_owned();
    let (service, value) = text.rsplit_once('=').ok_or_else(item)?;
    let service = service.trim().parse::<ServiceId>();
    let service = service.map_err(|rule| format!("{}; {rule}", item()))?;
    let value = parse(value.trim());
    let value = value
        .map_err(|rule| format!("{}; {}", item(), rule.replace("it must", "the value must")))?;
    Ok((service, value))
}

/// A service on a node of its own.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ServiceUrl(pub(super) ServiceScopeId, pub(super) String);

impl SettingValue for ServiceUrl {
    fn parse(text: &str) -> Result<Self, String> {
        let Some((service, url)) = text.split_once('=') else {
            return Err("each item must be SERVICE=URL".to_owned());
        };
        let service = parse_service(service.trim())?;
        Ok(Self(service, NodeUrl::parse(url.trim())?.0))
    }

    fn redacted(text: &str) -> String {
        NodeUrl::redacted(text)
    }
}

/// The error does not repeat the text, which may be a part of a URL with a password.
fn parse_service(text: &str) -> Result<ServiceScopeId, String> {
    text.parse().map_err(|_| {
        "a service must be circuit::service, both of ASCII letters, digits, '-' and '_'".to_owned()
    })
}

/// A service at another node of its circuit.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PeerSetting(pub(super) PeerService);

impl PeerSetting {
    const RULE: &str = "each item must be SERVICE=ID@URL, where ID is the service's id at the other \
                        node, such as \"abcde-01234::gsAA=gsBB@http://beta:8085\"";
}

impl SettingValue for PeerSetting {
    fn parse(text: &str) -> Result<Self, String> {
        let rule = || Self::RULE.to_owned();
        let (service, peer) = text.split_once('=').ok_or_else(rule)?;
        let (id, url) = peer.split_once('@').ok_or_else(rule)?;
        let service: ServiceScopeId = parse_service(service.trim())?;
        let peer = parse_service(&format!("{}::{}", service.circuit(), id.trim()))?;
        if peer == service {
            return Err(format!("{service} is its own peer; {}", Self::RULE));
        }
        let url = NodeUrl::parse(url.trim())?.0;
        Ok(Self(PeerService { service, peer, url }))
    }

    fn redacted(text: &str) -> String {
        NodeUrl::redacted(text)
    }
}
