use std::{borrow::Cow, collections::BTreeMap};

use crate::request::SimRequest;

/// The absolute link of a response, built from the headers of the client or a proxy.
pub(super) fn build(request: &SimRequest, path: &str, ids: Option<&str>) -> String {
    let scheme = forwarded(request, "proto").unwrap_or(Cow::Borrowed("http"));
    let host = forwarded(request, "host")
        .or_else(|| request.header("host").map(Cow::Borrowed))
        .unwrap_or_default();
    let prefix = forwarded(request, "path").unwrap_or_default();
    let mut queries: BTreeMap<_, _> = request.query.pairs().collect();
    queries.extend(ids.map(|ids| ("id", ids)));
    let queries: Vec<_> = queries
        .into_iter()
        .map(|(name, value)| match value {
            "" => name.to_owned(),
            value => format!("{name}={value}"),
        })
        .collect();
    let separator = if queries.is_empty() { "" } else { "?" };
    format!("{scheme}://{host}{prefix}{path}{separator}{}", queries.join("&"))
}

/// The original value that a proxy reports in `Forwarded`, otherwise in `X-Forwarded-…`.
fn forwarded<'a>(request: &'a SimRequest, key: &str) -> Option<Cow<'a, str>> {
    let standard = request.header("forwarded").and_then(|header| parameter(header, key));
    let common = || request.header(&format!("x-forwarded-{key}"));
    standard.or_else(common).filter(|value| !value.is_empty()).map(Cow::Borrowed)
}

fn parameter<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, value) = header
        .split([';', ',', ' '])
        .filter_map(|part| part.split_once('='))
        .find(|(name, _)| name.eq_ignore_ascii_case(key))?;
    Some(value.trim_matches('"'))
}
