use grid_batch_settings::{RequestOptions, redact_header, settings};
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
        pub options: RequestOptions<AllowedNetwork> = list("").redacted_by(redact_header) => RequestOptions::read,
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_http::{HttpClient, HttpHeaders, TlsOptions};

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
        let printed = config.to_string();
        assert!(printed.contains("\"header:X-Key: ***\", \"authorities:/ca.pem\""), "{printed}");
        for shown in [printed, format!("{config:?} {:?}", config.requests)] {
            assert!(!shown.contains("pass=word"), "{shown}");
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
        let error = HttpClient::new(&config.http_options()).unwrap_err();
        assert!(error.to_string().contains("/missing.pem"), "{error}");
    }
}
