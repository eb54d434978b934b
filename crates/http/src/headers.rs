use std::{fmt, str::FromStr};

use reqwest::header::HeaderMap;

use crate::{HttpError, request::header_map};

/// Headers for each request, such as a key that a provider of nodes requires. `Debug` and errors do not show their
/// values.
///
/// ```
/// use grid_batch_http::HttpHeaders;
///
/// let headers: HttpHeaders = "x-api-key: secret\nx-network: main".parse()?;
/// assert_eq!(format!("{headers:?}"), r#"HttpHeaders(["x-api-key", "x-network"])"#);
/// # Ok::<(), grid_batch_http::HttpError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HttpHeaders(pub(crate) HeaderMap);

impl FromStr for HttpHeaders {
    type Err = HttpError;

    /// Each line is a name, a colon and a value.
    fn from_str(text: &str) -> Result<Self, HttpError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let parsed: Option<Vec<(&str, &str)>> = lines.map(|line| line.split_once(':')).collect();
        let parsed = parsed
            .ok_or_else(|| HttpError::InvalidRequest("a header must be NAME: VALUE".to_owned()))?;
        let trimmed: Vec<(&str, &str)> =
            parsed.iter().map(|(name, value)| (name.trim(), value.trim())).collect();
        let mut headers = header_map(&trimmed)?;
        headers.values_mut().for_each(|value| value.set_sensitive(true));
        Ok(Self(headers))
    }
}

impl fmt::Debug for HttpHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.keys().map(|name| name.as_str()).collect();
        f.debug_tuple("HttpHeaders").field(&names).finish()
    }
}
