use reqwest::{
    Body, Client, Method, Request, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};

use crate::HttpError;

/// A request with these headers. A user name and a password in the URL become an `Authorization` header, unless the
/// headers have one.
pub(crate) fn new_request(
    client: &Client,
    method: Method,
    url: Url,
    headers: &[(&str, &str)],
    body: Option<Body>,
) -> Result<Request, HttpError> {
    let request = client.request(method, url).headers(header_map(headers)?);
    let request = match body {
        Some(body) => request.body(body),
        None => request,
    };
    request.build().map_err(|error| HttpError::from_reqwest(&error))
}

/// Its errors do not show a value, which may be a secret.
pub(crate) fn header_map(headers: &[(&str, &str)]) -> Result<HeaderMap, HttpError> {
    headers.iter().map(|(name, value)| header(name, value)).collect()
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HttpError> {
    let name: HeaderName = name
        .parse()
        .map_err(|_| HttpError::InvalidRequest(format!("invalid header name {name:?}")))?;
    let mut value: HeaderValue = value.parse().map_err(|_| {
        HttpError::InvalidRequest(format!("the value of header {name} has an invalid character"))
    })?;
    value.set_sensitive(name == AUTHORIZATION);
    Ok((name, value))
}
