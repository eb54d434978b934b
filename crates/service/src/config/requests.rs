use std::{borrow::Cow, path::PathBuf};

use grid_batch_http::{HttpError, HttpHeaders, Pem, TlsOptions};
use grid_batch_settings::{
    ConfigError, GivenValue, NOT_SHOWN, Setting, SettingValue, SettingValues, settings,
};
use grid_batch_webhooks::AllowedNetwork;

settings! {
    /// The requests that the server sends.
    #[derive(Debug, Clone)]
    pub struct RequestsConfig in "requests.*." {
        /// What requests have; the key is nodes, signers, oracle or webhooks. header:NAME: VALUE is a header.
        /// authorities:FILE has certificates of authorities, in PEM format, that are trusted besides those of the
        /// system, certificate:FILE the certificate that the server shows and its key. private:NETWORK is a private
        /// address or network, such as 10.0.0.0/8, to which events may be sent (webhooks).
        ///
        /// Use it for the key of a provider, for certificates of your own authority, and for receivers of events in
        /// your own network, which must be the same on all instances: a client that creates webhooks can reach all of
        /// it.
        pub options: RequestOptions = list("").redacted_by(RequestOption::redact) => RequestOptions::read,
    }
}

/// The options of the requests to each kind of receiver.
#[derive(Debug, Clone, Default)]
pub struct RequestOptions {
    /// To nodes of the ledger.
    pub nodes: RequestsTo,
    /// To remote signers.
    pub signers: RequestsTo,
    /// To the gas price oracle.
    pub oracle: RequestsTo,
    /// To the receivers of events.
    pub webhooks: RequestsTo,
}

/// The options of requests to one kind of receiver.
#[derive(Debug, Clone, Default)]
pub struct RequestsTo {
    /// Further headers.
    pub headers: HttpHeaders,
    /// What TLS uses.
    pub tls: TlsOptions,
    /// Private networks to which they may be sent.
    pub private: Vec<AllowedNetwork>,
}

impl RequestOptions {
    fn read(values: &SettingValues, setting: &Setting) -> Result<Self, ConfigError> {
        let mut options = Self::default();
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

impl RequestsTo {
    fn read(given: &GivenValue) -> Result<Self, ConfigError> {
        let mut read = Self::default();
        let mut headers = Vec::new();
        for option in given.get::<Vec<RequestOption>>()? {
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
enum RequestOption {
    Header(String),
    Authorities(PathBuf),
    Certificate(PathBuf),
    Private(AllowedNetwork),
}

const RULE: &str = "each item must be header:NAME: VALUE without a comma, authorities:FILE, certificate:FILE or \
                    private:NETWORK";

impl SettingValue for RequestOption {
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
                value.parse().map(Self::Private).map_err(|error| format!("private: {error}"))
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

impl RequestOption {
    /// Replaces the value of a header.
    fn redact(text: &str) -> Cow<'_, str> {
        let Some((before, header)) = text.split_once("header:") else { return text.into() };
        let name = header.split(':').next().unwrap_or_default();
        format!("{before}header:{name}: ***").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn config(options: &str) -> Result<Config, String> {
        let flag = ("requests.*.options".to_owned(), options.to_owned());
        Config::from_flags(vec![flag]).map_err(|error| error.to_string())
    }

    #[test]
    fn requests_have_the_options_of_their_receivers() {
        let config = config(
            "nodes=header:X-Key: pass=word, nodes=authorities:/ca.pem, nodes=certificate:/own.pem, \
             webhooks=private:10.0.0.0/8, signers=header:X-Other: 1",
        )
        .unwrap();
        let nodes = config.http_options();
        assert_eq!(nodes.headers, "x-key: pass=word".parse().unwrap());
        assert_eq!(nodes.tls.authorities.len(), 1);
        assert!(nodes.tls.client_certificate.is_some());
        let events = config.delivery_options();
        assert!(events.allowed.allows("10.1.2.3".parse().unwrap()));
        assert_eq!((events.headers, events.tls), (HttpHeaders::default(), TlsOptions::default()));
        #[cfg(feature = "evm")]
        {
            assert_eq!(config.signer_http_options().headers, "x-other: 1".parse().unwrap());
            assert_eq!(config.oracle_http_options().headers, HttpHeaders::default());
        }
        let printed = config.settings.printed().to_string();
        assert!(printed.contains("\"header:X-Key: ***\", \"authorities:/ca.pem\""), "{printed}");
        for shown in [printed, format!("{config:?} {:?}", config.requests)] {
            assert!(!shown.contains("pass"), "{shown}");
        }
        assert_eq!(config.readable_secrets().len(), 2);
    }

    #[test]
    fn invalid_options_are_refused_without_secrets() {
        for (options, rule) in [
            ("header:X-Key: secret", "its key must be nodes"),
            ("others=header:X-Key: secret", "its key must be nodes"),
            ("nodes=header:X-Key secret", "a header must be NAME: VALUE"),
            ("nodes=header:X Key: secret", "invalid header name"),
            ("nodes=header:X-Key: a,nodes=secret", "each item must be header:NAME: VALUE"),
            ("nodes=X-Key: secret", "each item must be header:NAME: VALUE"),
            ("nodes=header:", "each item must be header:NAME: VALUE"),
            ("nodes=certificate:/a,nodes=certificate:/b", "certificate: is given twice"),
            ("nodes=private:10.0.0.0/8", "private: is only for the key webhooks"),
            ("webhooks=private:receiver", "it must be an IP address or a network"),
        ] {
            let error = config(options).map(drop).unwrap_err();
            assert!(error.contains(rule), "{options}: {error}");
            assert!(!error.contains("secret"), "{options}: {error}");
        }
    }

    #[test]
    fn text_in_place_of_a_list_is_not_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "[requests.nodes]\noptions = \"header:X-Key: hidden\"";
        std::fs::write(file.path(), text).unwrap();
        let loaded = Config::load(Some(file.path()), std::iter::empty(), Vec::new());
        let error = loaded.unwrap_err().to_string();
        assert!(error.contains("it must be a list") && !error.contains("hidden"), "{error}");
    }

    #[test]
    fn missing_certificate_is_an_error_of_the_client() {
        let config = config("nodes=certificate:/missing.pem").unwrap();
        let error = grid_batch_http::HttpClient::new(&config.http_options()).unwrap_err();
        assert!(error.to_string().contains("/missing.pem"), "{error}");
    }
}
