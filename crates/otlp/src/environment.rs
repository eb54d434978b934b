//! The environment variables of OpenTelemetry. What its crates read themselves is not read here.

use std::{path::PathBuf, time::Duration};

use grid_batch_http::Pem;
use thiserror::Error;

const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// How the collector is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorOptions {
    /// The time limit of a request.
    pub timeout: Duration,
    /// A file with certificates of authorities that TLS trusts besides those of the system.
    pub authorities: Option<Pem>,
}

/// An environment variable has a value that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name} is {value:?}, but {rule}")]
pub struct EnvironmentError {
    name: &'static str,
    value: String,
    rule: &'static str,
}

impl CollectorOptions {
    /// What the environment of the process requests. `None`: it names no collector, or turns the export off.
    pub fn of_process() -> Result<Option<Self>, EnvironmentError> {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, EnvironmentError> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let first =
            |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, get(name)?)));
        let is_off = get("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"))
            || get("OTEL_TRACES_EXPORTER").is_some_and(|it| it == "none");
        if is_off || first(ENDPOINTS).is_none() {
            return Ok(None);
        }
        let refuse = |(name, value), rule| Err(EnvironmentError { name, value, rule });
        if let Some(exporter) = get("OTEL_TRACES_EXPORTER").filter(|it| it != "otlp") {
            return refuse(("OTEL_TRACES_EXPORTER", exporter), "only otlp and none are supported");
        }
        let protocol = first(["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]);
        if let Some(protocol) = protocol.filter(|(_, value)| value != "http/protobuf") {
            return refuse(protocol, "only http/protobuf is supported; its usual port is 4318");
        }
        let timeout = first(["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"]);
        let millis = timeout.and_then(|(_, value)| value.parse().ok()).unwrap_or(10_000);
        let certificates =
            first(["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"]);
        Ok(Some(Self {
            timeout: Duration::from_millis(millis),
            authorities: certificates.map(|(_, file)| Pem::File(PathBuf::from(file))),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<CollectorOptions>, String> {
        let get = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        CollectorOptions::read(get).map_err(|error| error.to_string())
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

    #[test]
    fn export_needs_an_endpoint() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[(ENDPOINT.0, "")]), Ok(None));
        let options = CollectorOptions { timeout: Duration::from_secs(10), authorities: None };
        assert_eq!(read(&[ENDPOINT]), Ok(Some(options.clone())));
        assert_eq!(
            read(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c/x")]),
            Ok(Some(options))
        );
    }

    #[test]
    fn export_can_be_turned_off() {
        for off in [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert_eq!(read(&[ENDPOINT, off]), Ok(None));
        }
        assert!(read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "false")]).unwrap().is_some());
        assert!(read(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "otlp")]).unwrap().is_some());
    }

    #[test]
    fn time_limit_and_authorities_are_read() {
        let options = read(&[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
        ]);
        let expected = CollectorOptions {
            timeout: Duration::from_millis(2_500),
            authorities: Some(Pem::File("/ca.pem".into())),
        };
        assert_eq!(options, Ok(Some(expected)));
    }

    #[test]
    fn what_is_not_supported_is_refused() {
        for (variable, message) in [
            (
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
                r#"OTEL_EXPORTER_OTLP_PROTOCOL is "grpc", but only http/protobuf is supported; its usual port is 4318"#,
            ),
            (
                ("OTEL_TRACES_EXPORTER", "zipkin"),
                r#"OTEL_TRACES_EXPORTER is "zipkin", but only otlp and none are supported"#,
            ),
        ] {
            assert_eq!(read(&[ENDPOINT, variable]), Err(message.to_owned()));
        }
    }
}
