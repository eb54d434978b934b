use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::percent_decode_str;
use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};

use crate::{HttpError, address::parse};

/// Where a request goes, and what stands at its head.
pub(crate) struct Target {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

impl Target {
    /// A target of one of these schemes. A name and a password in the address become a header,
    /// unless there is one already.
    pub(crate) fn new(
        url: &str,
        schemes: &[&str],
        headers: &[(&str, &str)],
    ) -> Result<Self, HttpError> {
        let mut url = parse(url, schemes)?;
        let mut headers: HeaderMap =
            headers.iter().map(|(name, value)| header(name, value)).collect::<Result<_, _>>()?;
        if let Some(authorization) = take_userinfo(&mut url) {
            let (name, value) = header(AUTHORIZATION.as_str(), &authorization)?;
            headers.entry(name).or_insert(value);
        }
        Ok(Self { url, headers })
    }
}

/// What is wrong with a header is said without its value, which may be a secret.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HttpError> {
    let name: HeaderName = name
        .parse()
        .map_err(|_| HttpError::Request(format!("{name:?} cannot be the name of a header")))?;
    let mut value: HeaderValue = value.parse().map_err(|_| {
        HttpError::Request(format!("the header {name} has a character that none can have"))
    })?;
    value.set_sensitive(name == AUTHORIZATION);
    Ok((name, value))
}

/// `Basic` authorization from the address, which loses its name and password.
fn take_userinfo(url: &mut Url) -> Option<String> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut credentials: Vec<u8> = percent_decode_str(url.username()).collect();
    credentials.push(b':');
    credentials.extend(percent_decode_str(url.password().unwrap_or_default()));
    // These fail only where there is no host, and then there was no name either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(format!("Basic {}", BASE64_STANDARD.encode(credentials)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::HTTP;

    fn authorization(url: &str, headers: &[(&str, &str)]) -> Option<String> {
        let target = Target::new(url, HTTP, headers).unwrap();
        assert_eq!(target.url.as_str(), "http://h/");
        let value = target.headers.get(AUTHORIZATION)?;
        assert!(!format!("{:?}", target.headers).contains("Basic"));
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_name_and_a_password_in_the_address_become_a_header() {
        let of = |url| authorization(url, &[]);
        assert_eq!(
            of("http://Aladdin:open%20sesame@h").unwrap(),
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
        assert_eq!(of("http://Aladdin@h").unwrap(), "Basic QWxhZGRpbjo=");
        assert_eq!(of("http://h"), None);
    }

    #[test]
    fn a_header_that_is_given_counts_more() {
        let given = authorization("http://u:p@h", &[("authorization", "Bearer x")]);
        assert_eq!(given.unwrap(), "Bearer x");
    }

    #[test]
    fn headers_that_cannot_be_sent_are_refused_without_their_values() {
        for (name, value) in
            [("a b", "secret"), ("", "secret"), ("authorization", "secret\r\nx: y")]
        {
            let error = Target::new("http://h", HTTP, &[(name, value)]).err().unwrap();
            assert!(matches!(error, HttpError::Request(_)), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
