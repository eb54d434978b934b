use std::{fmt, os::unix::ffi::OsStrExt, path::Path};

use diesel::{Connection, ConnectionResult, PgConnection};

/// The environment variable that names the server to test on, as a `postgresql://` URL.
pub const URL_VARIABLE: &str = "GRID_BATCH_TEST_DATABASE_URL";

/// The URL of a server. `Display` and `Debug` leave passwords out.
#[derive(Clone)]
pub(crate) struct ServerUrl(String);

impl ServerUrl {
    /// A URL that the user of the tests gave.
    pub(crate) fn from_text(url: String) -> Self {
        assert!(
            url.starts_with("postgresql://") || url.starts_with("postgres://"),
            "{URL_VARIABLE} must be a URL: postgresql://user@host/database"
        );
        Self(url)
    }

    /// The server whose socket is in this directory.
    pub(crate) fn from_socket_directory(directory: &Path, port: u16) -> Self {
        let host = percent_encode(directory.as_os_str().as_bytes());
        Self(format!("postgresql:///postgres?host={host}&port={port}&user=postgres"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A URL whose connections have this schema as their search path.
    pub(crate) fn with_schema(&self, schema: &str) -> String {
        let option = percent_encode(format!("-csearch_path={schema}").as_bytes());
        let Some((base, parameters)) = self.0.split_once('?') else {
            return format!("{}?options={option}", self.0);
        };
        let mut options = option;
        let mut others = Vec::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.strip_prefix("options=") {
                Some(existing) => options = format!("{existing}%20{options}"),
                None => others.push(parameter),
            }
        }
        others.push("options=");
        format!("{base}?{}{options}", others.join("&"))
    }

    pub(crate) fn try_connect(&self) -> ConnectionResult<PgConnection> {
        PgConnection::establish(&self.0)
    }

    pub(crate) fn connect(&self) -> PgConnection {
        self.try_connect().unwrap_or_else(|error| panic!("cannot connect to {self}: {error}"))
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (base, parameters) = self.0.split_once('?').unwrap_or((&self.0, ""));
        f.write_str(&without_password(base))?;
        let mut separator = '?';
        for parameter in parameters.split('&') {
            let name = parameter.split('=').next().unwrap_or_default();
            if !name.is_empty() && !name.ends_with("password") {
                write!(f, "{separator}{parameter}")?;
                separator = '&';
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({self})")
    }
}

fn without_password(url: &str) -> String {
    let Some((login, host)) = url.rsplit_once('@') else {
        return url.to_owned();
    };
    let (scheme, login) = login.split_once("://").unwrap_or(("postgresql", login));
    let user = login.split(':').next().unwrap_or_default();
    format!("{scheme}://{user}@{host}")
}

fn percent_encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_directory_is_percent_encoded() {
        let url = ServerUrl::from_socket_directory(Path::new("/tmp/a b&c=d?%é"), 5432);
        assert_eq!(
            url.as_str(),
            "postgresql:///postgres?host=%2Ftmp%2Fa%20b%26c%3Dd%3F%25%C3%A9&port=5432&user=postgres"
        );
    }

    #[test]
    fn schema_is_added_to_existing_options() {
        for (url, expected) in [
            ("postgres://h/d", "postgres://h/d?options=-csearch_path%3Ds"),
            ("postgres://h/d?", "postgres://h/d?options=-csearch_path%3Ds"),
            ("postgres://h/d?user=u", "postgres://h/d?user=u&options=-csearch_path%3Ds"),
            (
                "postgres://h/d?options=-cjit%3Doff&user=u",
                "postgres://h/d?user=u&options=-cjit%3Doff%20-csearch_path%3Ds",
            ),
        ] {
            assert_eq!(ServerUrl::from_text(url.to_owned()).with_schema("s"), expected);
        }
    }

    #[test]
    fn passwords_are_not_displayed() {
        for (url, shown) in [
            ("postgres://h/d", "postgres://h/d"),
            ("postgres://u@h/d?user=v", "postgres://u@h/d?user=v"),
            ("postgres://u:secret@h:5/d", "postgres://u@h:5/d"),
            ("postgres://u:s@e:c@h/d", "postgres://u@h/d"),
            ("postgres:///d?password=secret&host=h&sslpassword=secret", "postgres:///d?host=h"),
        ] {
            let url = ServerUrl::from_text(url.to_owned());
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("ServerUrl({shown})"));
        }
    }

    #[test]
    #[should_panic(expected = "GRID_BATCH_TEST_DATABASE_URL must be a URL")]
    fn key_value_connection_string_is_rejected() {
        ServerUrl::from_text("host=h dbname=d".to_owned());
    }
}
