use std::{fmt, path::PathBuf, str::FromStr};

use thiserror::Error;

/// Which database: the URL decides between PostgreSQL and SQLite.
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
pub struct DatabaseUrl(Kind);

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    #[cfg(feature = "postgres")]
    Postgres(String),
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf),
}

/// Why a text is no database URL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UrlError {
    /// It begins with no scheme that is known.
    #[error(
        "the database URL begins with {scheme:?}; it begins with postgres:// or postgresql:// \
         for a server, or sqlite:// for a file"
    )]
    Scheme {
        /// What it begins with, up to the first colon.
        scheme: String,
    },
    /// The scheme is known, and this build has no such database.
    #[error("this build has no {database}: it was built without the feature {feature:?}")]
    NotBuilt {
        /// The database's name.
        database: &'static str,
        /// The feature to build with.
        feature: &'static str,
    },
    /// No file is named.
    #[error("the database URL names no file; write sqlite:// and the path of the file")]
    NoPath,
    /// SQLite's own kind of URL is given.
    #[error("the database URL names no path after sqlite: but a URL; write the path of the file")]
    NotAPath,
    /// An SQLite database in memory is asked for.
    #[error(
        "the database URL asks for a database in memory, where an acknowledged batch would be lost; \
         name a file"
    )]
    InMemory,
}

impl DatabaseUrl {
    pub(crate) fn kind(&self) -> &Kind {
        &self.0
    }
}

impl FromStr for DatabaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match scheme {
            "postgres" | "postgresql" if rest.starts_with("//") => postgres(text),
            "sqlite" => sqlite(rest.strip_prefix("//").unwrap_or(rest)),
            _ => Err(UrlError::Scheme { scheme: scheme.chars().take(32).collect() }),
        }
    }
}

#[cfg(feature = "postgres")]
fn postgres(text: &str) -> Result<DatabaseUrl, UrlError> {
    Ok(DatabaseUrl(Kind::Postgres(text.to_owned())))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_text: &str) -> Result<DatabaseUrl, UrlError> {
    Err(UrlError::NotBuilt { database: "PostgreSQL", feature: "postgres" })
}

#[cfg(feature = "sqlite")]
fn sqlite(path: &str) -> Result<DatabaseUrl, UrlError> {
    match path {
        "" => Err(UrlError::NoPath),
        ":memory:" => Err(UrlError::InMemory),
        // SQLite would read it as a URL of its own, which can name memory too.
        path if path.starts_with("file:") => Err(UrlError::NotAPath),
        path => Ok(DatabaseUrl(Kind::Sqlite(PathBuf::from(path)))),
    }
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_path: &str) -> Result<DatabaseUrl, UrlError> {
    Err(UrlError::NotBuilt { database: "SQLite", feature: "sqlite" })
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            #[cfg(feature = "postgres")]
            Kind::Postgres(url) => f.write_str(&without_secrets(url)),
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

/// The URL without its password, and without parameters that may hold one.
#[cfg(feature = "postgres")]
fn without_secrets(url: &str) -> String {
    let (address, _parameters) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    // A password may itself hold an unescaped @: what follows the last one is the host.
    match rest.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _password)) => format!("{scheme}://{name}:***@{host}"),
            None => format!("{scheme}://{user}@{host}"),
        },
        None => format!("{scheme}://{rest}"),
    }
}

#[cfg(all(test, feature = "postgres", feature = "sqlite"))]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        for url in [
            "postgres://u:hidden@h/db",
            "postgres://u:hid@den:hidden@h/db",
            "postgresql:///db?user=u&password=hidden",
            "postgres://u:hidden@h:5432/db?sslpassword=hidden",
        ] {
            let url: DatabaseUrl = url.parse().unwrap();
            let shown = format!("{url} {url:?}");
            assert!(!shown.contains("hidden") && !shown.contains("den"), "{shown}");
        }
    }

    #[test]
    fn what_is_no_url_is_told_why() {
        let message = |url: &str| url.parse::<DatabaseUrl>().unwrap_err().to_string();
        assert!(message("mysql://h/db").starts_with("the database URL begins with \"mysql\""));
        assert!(message("batches.db").starts_with("the database URL begins with \"batches.db\""));
        assert!(message("").contains("begins with \"\""));
        assert_eq!(message("sqlite://"), UrlError::NoPath.to_string());
        assert_eq!(message("sqlite::memory:"), UrlError::InMemory.to_string());
        for url in ["sqlite:file::memory:", "sqlite://file:x?mode=memory", "sqlite:file:"] {
            assert_eq!(message(url), UrlError::NotAPath.to_string());
        }
    }

    #[test]
    fn paths_are_relative_or_absolute() {
        for (url, path) in
            [("sqlite:a/b.db", "a/b.db"), ("sqlite://b.db", "b.db"), ("sqlite:///b.db", "/b.db")]
        {
            let url: DatabaseUrl = url.parse().unwrap();
            assert!(*url.kind() == Kind::Sqlite(PathBuf::from(path)));
        }
    }
}
