use std::{borrow::Cow, collections::BTreeMap};

use crate::ask::Ask;

/// The link that an answer carries: absolute, built from what the client or a proxy says.
pub(super) fn build(ask: &Ask, path: &str, ids: Option<&str>) -> String {
    let scheme = forwarded(ask, "proto").unwrap_or(Cow::Borrowed("http"));
    let host = forwarded(ask, "host")
        .or_else(|| ask.header("host").map(Cow::Borrowed))
        .unwrap_or_default();
    let prefix = forwarded(ask, "path").unwrap_or_default();
    let mut queries: BTreeMap<_, _> = ask.query.pairs().collect();
    queries.extend(ids.map(|ids| ("id", ids)));
    let queries: Vec<_> = queries
        .into_iter()
        .map(|(name, value)| match value {
            "" => name.to_owned(),
            value => format!("{name}={value}"),
        })
        .collect();
    let mark = if queries.is_empty() { "" } else { "?" };
    format!("{scheme}://{host}{prefix}{path}{mark}{}", queries.join("&"))
}

/// What a proxy says of the request as it was before: in `Forwarded`, or else in `X-Forwarded-…`.
fn forwarded<'a>(ask: &'a Ask, key: &str) -> Option<Cow<'a, str>> {
    let standard = ask.header("forwarded").and_then(|header| parameter(header, key));
    let usual = || ask.header(&format!("x-forwarded-{key}"));
    standard.or_else(usual).filter(|value| !value.is_empty()).map(Cow::Borrowed)
}

fn parameter<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, value) = header
        .split([';', ',', ' '])
        .filter_map(|part| part.split_once('='))
        .find(|(name, _)| name.eq_ignore_ascii_case(key))?;
    Some(value.trim_matches('"'))
}
