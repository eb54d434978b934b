use std::{fmt, path::PathBuf, str::FromStr};

#[cfg(feature = "postgres")]
use grid_batch_support::redact_password;
use thiserror::Error;

use super::StoreError;

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
    /// As `Existing`, and nothing is written.
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
    /// The scheme is missing or unknown.
    #[error(
        "the database URL begins with {scheme:?}; expected postgres://... or postgresql://... for a \
         server, or sqlite://FILE"
    )]
    Scheme {
        /// The text up to the first colon.
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
    /// The path of the file is missing.
    #[error("the database URL names no file; expected sqlite://FILE")]
    NoPath,
    /// The path is one of SQLite's own `file:` URLs.
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

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// Fails if a file is to be used that does not exist.
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
        match scheme {
            "postgres" | "postgresql" if rest.starts_with("//") => postgres(text),
            "sqlite" => sqlite(rest.strip_prefix("//").unwrap_or(rest)),
            _ => Err(UrlError::Scheme { scheme: scheme.chars().take(32).collect() }),
        }
    }
}

#[cfg(feature = "postgres")]
fn postgres(text: &str) -> Result<DatabaseUrl, UrlError> {
    Ok(DatabaseUrl::new(Kind::Postgres(text.to_owned())))
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
        // SQLite would parse this as a URL of its own, which can also name memory.
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
    fn invalid_urls_are_refused_with_the_reason() {
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
    fn relative_and_absolute_paths_are_parsed() {
        for (url, path) in
            [("sqlite:a/b.db", "a/b.db"), ("sqlite://b.db", "b.db"), ("sqlite:///b.db", "/b.db")]
        {
            let url: DatabaseUrl = url.parse().unwrap();
            assert!(*url.kind() == Kind::Sqlite(PathBuf::from(path)));
        }
    }
}
