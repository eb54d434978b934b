use base64::{Engine, prelude::BASE64_STANDARD};
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use crate::{HttpError, url::Url};

/// The URL and the headers of a request.
pub(crate) struct RequestTarget {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

impl RequestTarget {
    /// A target whose URL has one of these schemes. A user name and a password in the URL become
    /// an `Authorization` header, unless the headers have one.
    pub(crate) fn new(
        url: &str,
        schemes: &[&str],
        headers: &[(&str, &str)],
    ) -> Result<Self, HttpError> {
        let mut url = Url::parse(url, schemes)?;
        let mut headers: HeaderMap =
            headers.iter().map(|(name, value)| header(name, value)).collect::<Result<_, _>>()?;
        if let Some(authorization) = take_credentials(&mut url) {
            let (name, value) = header(AUTHORIZATION.as_str(), &authorization)?;
            headers.entry(name).or_insert(value);
        }
        Ok(Self { url, headers })
    }
}

/// Its errors do not show the value, which may be a secret.
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

/// Removes the user name and the password from the URL and returns them as `Basic` authorization.
fn take_credentials(url: &mut Url) -> Option<String> {
    let user_info = url.user_info.take()?;
    let (user, password) = user_info.split_once(':').unwrap_or((&user_info, ""));
    let mut credentials: Vec<u8> = percent_decode_str(user).collect();
    credentials.push(b':');
    credentials.extend(percent_decode_str(password));
    Some(format!("Basic {}", BASE64_STANDARD.encode(credentials)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::HTTP_SCHEMES;

    fn authorization(url: &str, headers: &[(&str, &str)]) -> Option<String> {
        let target = RequestTarget::new(url, HTTP_SCHEMES, headers).unwrap();
        assert_eq!((target.url.origin().as_str(), target.url.user_info), ("http://h", None));
        let value = target.headers.get(AUTHORIZATION)?;
        assert!(!format!("{:?}", target.headers).contains("Basic"));
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn credentials_in_the_url_become_a_header() {
        let from_url = |url| authorization(url, &[]);
        assert_eq!(
            from_url("http://Aladdin:open%20sesame@h").unwrap(),
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
        assert_eq!(from_url("http://Aladdin@h").unwrap(), "Basic QWxhZGRpbjo=");
        assert_eq!(from_url("http://h"), None);
    }

    #[test]
    fn given_authorization_header_takes_precedence() {
        let given = authorization("http://u:p@h", &[("authorization", "Bearer x")]);
        assert_eq!(given.unwrap(), "Bearer x");
    }

    #[test]
    fn invalid_header_is_refused_without_its_value() {
        for (name, value) in
            [("a b", "secret"), ("", "secret"), ("authorization", "secret\r\nx: y")]
        {
            let error =
                RequestTarget::new("http://h", HTTP_SCHEMES, &[(name, value)]).err().unwrap();
            assert!(matches!(error, HttpError::InvalidRequest(_)), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
