use std::{array, borrow::Cow, fmt::Display, path::PathBuf, str::FromStr};

use grid_batch_http::{HttpError, HttpHeaders, Pem, TlsOptions};

use crate::{ConfigError, GivenValue, NOT_SHOWN, Setting, SettingValue, SettingValues};

/// The options of the requests to each kind of receiver. `N` is a network.
#[derive(Debug, Clone)]
pub struct RequestOptions<N> {
    /// To nodes of the ledger.
    pub nodes: RequestsTo<N>,
    /// To remote signers.
    pub signers: RequestsTo<N>,
    /// To the gas price oracle.
    pub oracle: RequestsTo<N>,
    /// To the receivers of events.
    pub webhooks: RequestsTo<N>,
}

/// The options of requests to one kind of receiver.
#[derive(Debug, Clone)]
pub struct RequestsTo<N> {
    /// Further headers.
    pub headers: HttpHeaders,
    /// What TLS uses.
    pub tls: TlsOptions,
    /// Private networks to which they may be sent.
    pub private: Vec<N>,
}

impl<N: FromStr<Err: Display>> RequestOptions<N> {
    /// Reads a setting whose keys are the kinds of receivers.
    pub fn read(values: &SettingValues, setting: &Setting) -> Result<Self, ConfigError> {
        let [nodes, signers, oracle, webhooks] = array::from_fn(|_| RequestsTo::default());
        let mut options = Self { nodes, signers, oracle, webhooks };
        for given in values.entries(setting) {
            let key = given.key.as_deref().unwrap_or_default();
            let to = match key {
                "nodes" => Some(&mut options.nodes),
                "signers" => Some(&mut options.signers),
                "oracle" => Some(&mut options.oracle),
                "webhooks" => Some(&mut options.webhooks),
                _ => None,
            };
            let to = to.ok_or_else(|| refused(given, KEYS))?;
            *to = RequestsTo::read(given)?;
            if key != "webhooks" && !to.private.is_empty() {
                return Err(refused(given, "private: is only for the key webhooks"));
            }
        }
        Ok(options)
    }
}

const KEYS: &str = "its key must be nodes, signers, oracle or webhooks";

/// The text is not shown, because it may be a part of a header.
fn refused(given: &GivenValue, rule: &str) -> ConfigError {
    given.conflict(format!("{}: {rule}", given.name()))
}

impl<N> Default for RequestsTo<N> {
    fn default() -> Self {
        Self { headers: HttpHeaders::default(), tls: TlsOptions::default(), private: Vec::new() }
    }
}

impl<N: FromStr<Err: Display>> RequestsTo<N> {
    fn read(given: &GivenValue) -> Result<Self, ConfigError> {
        let mut read = Self::default();
        let mut headers = Vec::new();
        for option in given.get::<Vec<RequestOption<N>>>()? {
            match option {
                RequestOption::Header(header) => headers.push(header),
                RequestOption::Authorities(file) => read.tls.authorities.push(Pem::File(file)),
                RequestOption::Certificate(file) => {
                    if read.tls.client_certificate.replace(Pem::File(file)).is_some() {
                        return Err(refused(given, "certificate: is given twice"));
                    }
                }
                RequestOption::Private(network) => read.private.push(network),
            }
        }
        read.headers = parse_headers(&headers.join("\n")).map_err(|rule| refused(given, &rule))?;
        Ok(read)
    }
}

fn parse_headers(lines: &str) -> Result<HttpHeaders, String> {
    lines.parse::<HttpHeaders>().map_err(|error| match error {
        HttpError::InvalidRequest(reason) => reason,
        error => error.to_string(),
    })
}

/// An item of the list.
enum RequestOption<N> {
    Header(String),
    Authorities(PathBuf),
    Certificate(PathBuf),
    Private(N),
}

const RULE: &str = "each item must be header:NAME: VALUE without a comma, authorities:FILE, certificate:FILE or \
                    private:NETWORK";

impl<N: FromStr<Err: Display>> SettingValue for RequestOption<N> {
    fn parse(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once(':').unwrap_or_default();
        let value = value.trim();
        let file = || Option::<PathBuf>::parse(value).map(Option::unwrap_or_default);
        match kind {
            _ if value.is_empty() => Err(RULE.to_owned()),
            "header" => parse_headers(value).map(|_| Self::Header(value.to_owned())),
            "authorities" => file().map(Self::Authorities),
            "certificate" => file().map(Self::Certificate),
            "private" => {
                value.parse::<N>().map(Self::Private).map_err(|error| format!("private: {error}"))
            }
            _ => Err(RULE.to_owned()),
        }
    }

    /// What has another beginning may be a part of a header.
    fn redacted(text: &str) -> String {
        let is_shown =
            ["authorities:", "certificate:", "private:"].iter().any(|it| text.starts_with(it));
        if is_shown { format!("{text:?}") } else { NOT_SHOWN.to_owned() }
    }
}

/// An item of the list without the value of a header.
pub fn redact_header(text: &str) -> Cow<'_, str> {
    let Some((before, header)) = text.split_once("header:") else { return text.into() };
    let name = header.split(':').next().unwrap_or_default();
    format!("{before}header:{name}: ***").into()
}
