//! `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.

use axum::http::{HeaderMap, HeaderName};

use super::{Told, parse_address, parse_host, parse_scheme};

pub(super) const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

pub(super) fn read(headers: &HeaderMap) -> Told {
    let addresses = items(headers, &FOR).map(parse_address).collect();
    let is_encrypted = items(headers, &PROTO).last().and_then(|text| parse_scheme(text.trim()));
    let host = items(headers, &HOST).last().and_then(|text| parse_host(text.trim()));
    Told { addresses, is_encrypted, host }
}

/// The items of all headers of this name. A header that is not text is an empty item.
fn items<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().flat_map(|value| value.to_str().unwrap_or("?").split(','))
}
