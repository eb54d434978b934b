//! Opens an SQLite file without creating it, as a plain path would.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use diesel::{
    Connection as _, ConnectionError, ConnectionResult, connection::SimpleConnection,
    sqlite::SqliteConnection,
};

use super::{private_file::prepare_database_file, url::Access};

pub(super) fn open(path: &str, access: Access) -> ConnectionResult<SqliteConnection> {
    match access {
        Access::Create => {
            // If this fails, SQLite reports the reason.
            let _ = prepare_database_file(Path::new(path));
            SqliteConnection::establish(path)
        }
        Access::Existing => open_with(path, "mode=rw"),
        Access::Read => open_to_read(path),
    }
}

/// SQLite needs an index beside its write-ahead log even for reading. If it cannot create one, the file is read as it
/// is, provided that there is no log and no other process has the file open.
fn open_to_read(path: &str) -> ConnectionResult<SqliteConnection> {
    let mut connection = open_with(path, "mode=ro")?;
    match connection.batch_execute("select 1 from sqlite_schema limit 1") {
        Ok(()) => Ok(connection),
        Err(_) if is_closed(path) => open_with(path, "immutable=1"),
        Err(error) => Err(ConnectionError::BadConnection(error.to_string())),
    }
}

fn open_with(path: &str, parameter: &str) -> ConnectionResult<SqliteConnection> {
    SqliteConnection::establish(&format!("file:{}?{parameter}", percent_encoded(path)))
}

/// Whether every process has closed the file, so that there is neither a log nor its index.
fn is_closed(path: &str) -> bool {
    let file = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    let beside = |ending: &str| {
        let mut name = file.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    !beside("-shm").exists() && fs::metadata(beside("-wal")).map_or(true, |log| log.len() == 0)
}

/// Escapes the characters of a path that have a meaning in a URL.
fn percent_encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for character in path.chars() {
        if matches!(character, '%' | '?' | '#') {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{:02x}", u32::from(character));
        } else {
            encoded.push(character);
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_any_character_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["plain.db", "a b.db", "100%.db", "what?.db", "no#1.db", "100%25.db"] {
            let path = directory.path().join(name).to_str().unwrap().to_owned();
            let mut created = open(&path, Access::Create).unwrap();
            created.batch_execute("create table t (a integer)").unwrap();
            assert!(fs::metadata(&path).unwrap().is_file(), "{path}");
            for access in [Access::Existing, Access::Read] {
                open(&path, access).unwrap().batch_execute("select a from t").unwrap();
            }
            let written = open(&path, Access::Read).unwrap().batch_execute("drop table t");
            assert!(written.is_err(), "{path}");
        }
    }

    #[test]
    fn missing_file_is_not_created() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("missing.db");
        for access in [Access::Existing, Access::Read] {
            assert!(open(path.to_str().unwrap(), access).is_err());
            assert!(!path.exists());
        }
    }
}
