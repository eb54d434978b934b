#[cfg(feature = "postgres")]
use std::env;
use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

#[cfg(feature = "postgres")]
use grid_batch_support::{Authority, AuthorityError, redact_password};
use thiserror::Error;

#[cfg(feature = "postgres")]
use super::tls_demand::tls_demand;
use super::{Dialect, StoreError};

/// The URL of a PostgreSQL or SQLite database.
///
/// ```
/// use grid_batch_store::DatabaseUrl;
///
/// let file: DatabaseUrl = "sqlite:///var/lib/grid-batch/batches.db".parse()?;
/// let server: DatabaseUrl = "postgres://batch:secret@db.example/batches".parse()?;
/// assert_eq!(file.to_string(), "sqlite:///var/lib/grid-batch/batches.db");
/// assert_eq!(server.to_string(), "postgres://batch:***@db.example/batches");
/// # Ok::<(), grid_batch_store::UrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    kind: Kind,
    access: Access,
}

/// What may be done with a database when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is created and migrated if needed.
    Create,
    /// It is used as it is: neither created nor migrated.
    Existing,
    /// Like `Existing`, but nothing is written.
    Read,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    #[cfg(feature = "postgres")]
    Postgres(String),
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf),
}

/// Why a text is not a database URL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The text is not a URL. It may be or contain a password.
    #[error(
        "it is not a URL; expected postgres://USER:PASSWORD@HOST/DATABASE for a server, also in place of a \
         libpq connection string (host=...), or sqlite://FILE"
    )]
    NotAUrl,
    /// The server's part of the URL cannot be read.
    #[cfg(feature = "postgres")]
    #[error("the database URL cannot be read: {0}")]
    Authority(AuthorityError),
    /// A parameter after the question mark is unknown or has no value.
    #[error(
        "the database URL cannot be read: each parameter after ? must be NAME=VALUE with a name that libpq \
         knows, and & between them; write ? as %3F, & as %26 and = as %3D in a user name, a password or a \
         value"
    )]
    Parameter,
    /// The scheme is unknown.
    #[error(
        "the database URL begins with {scheme:?}; expected postgres://... or postgresql://... for a \
         server, or sqlite://FILE"
    )]
    Scheme {
        /// The text up to `://`.
        scheme: String,
    },
    /// This build does not support the database.
    #[error("this build does not support {database}: build with the feature {feature:?}")]
    NotBuilt {
        /// The database's name.
        database: &'static str,
        /// The feature to build with.
        feature: &'static str,
    },
    /// The URL, or a variable that libpq reads, demands TLS of a build without it.
    #[cfg(feature = "postgres")]
    #[error(
        "{demand} demands TLS, which this build does not have: install a package of grid-batch, or build with the \
         feature \"postgres-tls\", which needs the headers of OpenSSL (libssl-dev)"
    )]
    WithoutTls {
        /// The parameter or the variable, with its value.
        demand: String,
    },
    /// The path of the file is missing.
    #[error("the database URL names no file; expected sqlite://FILE")]
    NoPath,
    /// The path is an SQLite `file:` URL.
    #[error("the database URL has a file: URL after sqlite:; expected sqlite://FILE")]
    NotAPath,
    /// The URL names an SQLite database in memory.
    #[error(
        "the database URL names a database in memory, which loses acknowledged batches; expected \
         sqlite://FILE"
    )]
    InMemory,
}

impl DatabaseUrl {
    fn new(kind: Kind) -> Self {
        Self { kind, access: Access::Create }
    }

    /// The database of a session, by its name or its file, without connection parameters.
    pub(super) fn of_session(dialect: Dialect, name: &str) -> Self {
        let kind = match dialect {
            #[cfg(feature = "postgres")]
            Dialect::Postgres => Kind::Postgres(format!("postgres:///{name}")),
            #[cfg(feature = "sqlite")]
            Dialect::Sqlite => Kind::Sqlite(PathBuf::from(name)),
        };
        Self { kind, access: Access::Existing }
    }

    /// The file, if the database is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.kind {
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => None,
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(path) => Some(path),
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match &self.kind {
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => Dialect::Postgres,
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(_) => Dialect::Sqlite,
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// Fails if an existing file is required but does not exist.
    pub(crate) fn check_exists(&self) -> Result<(), StoreError> {
        match &self.kind {
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(path) if self.access != Access::Create && !path.exists() => {
                Err(StoreError::NoDatabase { url: self.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// The same database, opened for this access.
    pub(crate) fn with_access(&self, access: Access) -> Self {
        Self { access, ..self.clone() }
    }
}

impl FromStr for DatabaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match (scheme, rest.strip_prefix("//")) {
            ("postgres" | "postgresql", Some(rest)) => postgres(text, rest),
            ("sqlite", without_slashes) => sqlite(without_slashes.unwrap_or(rest)),
            (scheme, Some(_)) if is_scheme(scheme) => {
                Err(UrlError::Scheme { scheme: scheme.to_owned() })
            }
            _ => Err(UrlError::NotAUrl),
        }
    }
}

/// Whether the text is the scheme of a URL rather than a part of something else.
fn is_scheme(text: &str) -> bool {
    const LONGEST: usize = 16;
    !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(feature = "postgres")]
fn postgres(url: &str, after_scheme: &str) -> Result<DatabaseUrl, UrlError> {
    let authority = Authority::parse(after_scheme).map_err(UrlError::Authority)?;
    // libpq would name the parameter in its error, although it may be a part of a password.
    let parameters = authority.rest.split_once('?').map_or("", |(_, parameters)| parameters);
    if !parameters.split('&').all(|parameter| parameter.is_empty() || is_parameter(parameter)) {
        return Err(UrlError::Parameter);
    }
    if authority.rest.contains('#') {
        return Err(UrlError::Authority(AuthorityError::NotEscaped));
    }
    if !cfg!(feature = "postgres-tls")
        && let Some(demand) = tls_demand(parameters, |variable| env::var(variable).ok())
    {
        return Err(UrlError::WithoutTls { demand });
    }
    Ok(DatabaseUrl::new(Kind::Postgres(url.to_owned())))
}

#[cfg(feature = "postgres")]
fn is_parameter(text: &str) -> bool {
    let is_known = |name: &str| LIBPQ_PARAMETERS.split_whitespace().any(|known| known == name);
    text.split_once('=').is_some_and(|(name, value)| is_known(name) && !value.contains('='))
}

/// The parameters that libpq knows. It names others in its errors.
#[cfg(feature = "postgres")]
const LIBPQ_PARAMETERS: &str = "host hostaddr port dbname user password passfile require_auth
    channel_binding connect_timeout client_encoding options application_name fallback_application_name
    keepalives keepalives_idle keepalives_interval keepalives_count tcp_user_timeout replication gssencmode
    ssl sslmode sslnegotiation requiressl sslcompression sslcert sslkey sslkeylogfile sslpassword sslcertmode
    sslrootcert sslcrl sslcrldir sslsni requirepeer ssl_min_protocol_version ssl_max_protocol_version
    min_protocol_version max_protocol_version krbsrvname gsslib gssdelegation scram_client_key
    scram_server_key service servicefile target_session_attrs load_balance_hosts oauth_issuer
    oauth_client_id oauth_client_secret oauth_scope";

#[cfg(not(feature = "postgres"))]
fn postgres(_url: &str, _after_scheme: &str) -> Result<DatabaseUrl, UrlError> {
    Err(UrlError::NotBuilt { database: "PostgreSQL", feature: "postgres" })
}

#[cfg(feature = "sqlite")]
fn sqlite(path: &str) -> Result<DatabaseUrl, UrlError> {
    match path {
        "" => Err(UrlError::NoPath),
        ":memory:" => Err(UrlError::InMemory),
        // SQLite would parse this as one of its own URLs, which may also name a database in memory.
        path if path.starts_with("file:") => Err(UrlError::NotAPath),
        path => Ok(DatabaseUrl::new(Kind::Sqlite(PathBuf::from(path)))),
    }
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_path: &str) -> Result<DatabaseUrl, UrlError> {
    Err(UrlError::NotBuilt { database: "SQLite", feature: "sqlite" })
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => f.write_str(&redact_password(url)),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

#[cfg(all(test, feature = "postgres", feature = "sqlite"))]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_displayed() {
        for url in [
            "postgres://u:hidden@h/db",
            "postgres://u:hid%40den:hidden@h/db",
            "postgresql:///db?user=u&password=hidden",
            "postgres://u:hidden@h:5432/db?sslpassword=hidden",
        ] {
            let url: DatabaseUrl = url.parse().unwrap();
            let shown = format!("{url} {url:?}");
            assert!(!shown.contains("hidden") && !shown.contains("den"), "{shown}");
        }
    }

    #[test]
    fn invalid_urls_are_refused_with_the_reason() {
        let message = |url: &str| url.parse::<DatabaseUrl>().unwrap_err().to_string();
        assert!(message("mysql://h/db").starts_with("the database URL begins with \"mysql\""));
        for text in ["batches.db", "", "host=h password=hidden", "a=hidden://h", "postgres:h"] {
            assert_eq!(message(text), UrlError::NotAUrl.to_string());
        }
        assert_eq!(message("sqlite://"), UrlError::NoPath.to_string());
        assert_eq!(message("sqlite::memory:"), UrlError::InMemory.to_string());
        for url in ["sqlite:file::memory:", "sqlite://file:x?mode=memory", "sqlite:file:"] {
            assert_eq!(message(url), UrlError::NotAPath.to_string());
        }
    }

    #[test]
    fn url_that_libpq_would_misread_is_refused() {
        let error = |url: &str| url.parse::<DatabaseUrl>().unwrap_err();
        let not_escaped = UrlError::Authority(AuthorityError::NotEscaped);
        for password in ["a@b", "a/b", "a?b", "a#b", "a%b", "a b"] {
            assert_eq!(error(&format!("postgres://u:{password}@h/db")), not_escaped, "{password}");
        }
        assert_eq!(error("postgres://h/db?password=a#b"), not_escaped);
        assert_eq!(error("postgres://h:x/db"), UrlError::Authority(AuthorityError::Port));
        for parameters in ["password", "=x", "password=a&b", "password=a=b", "passwort=x"] {
            assert_eq!(error(&format!("postgres://h/db?{parameters}")), UrlError::Parameter);
        }
        for url in [
            "postgres://u:a%40b@h1:1,h2:2/db?options=c%3D",
            "postgresql:///db",
            "postgres://?user=u",
        ] {
            assert!(url.parse::<DatabaseUrl>().is_ok(), "{url}");
        }
    }

    #[test]
    fn relative_and_absolute_paths_are_parsed() {
        for (url, path) in
            [("sqlite:a/b.db", "a/b.db"), ("sqlite://b.db", "b.db"), ("sqlite:///b.db", "/b.db")]
        {
            let url: DatabaseUrl = url.parse().unwrap();
            assert!(*url.kind() == Kind::Sqlite(PathBuf::from(path)));
        }
    }
}
