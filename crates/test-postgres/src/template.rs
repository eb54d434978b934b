use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::{installation::Installation, work_directory::WorkDirectory};

/// The data directory that new servers copy. It is created once for each version of PostgreSQL,
/// because `initdb` takes a second and a copy does not.
pub(crate) fn template(work_directory: &WorkDirectory, installation: &Installation) -> PathBuf {
    let path = work_directory.path().join(template_name(&installation.version()));
    create_once(&path, work_directory, installation)
        .unwrap_or_else(|error| panic!("cannot create the template {}: {error}", path.display()));
    path
}

fn create_once(
    path: &Path,
    work_directory: &WorkDirectory,
    installation: &Installation,
) -> io::Result<()> {
    let lock = File::create(path.with_extension("lock"))?;
    work_directory.account().take_ownership(&path.with_extension("lock"))?;
    lock.lock()?;
    if path.join("PG_VERSION").exists() {
        return Ok(());
    }
    // `initdb` writes to a directory with another name, so that a killed process does not leave an incomplete template.
    let unfinished = path.with_extension("unfinished");
    for leftover in [&unfinished, path] {
        remove(leftover)?;
    }
    initdb(&unfinished, lock, work_directory, installation)?;
    fs::rename(unfinished, path)
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// `initdb` gets the lock file as its standard input. If this process is killed, the lock is held
/// until `initdb` has ended.
fn initdb(
    data: &Path,
    lock: File,
    work_directory: &WorkDirectory,
    installation: &Installation,
) -> io::Result<()> {
    let output = work_directory
        .account()
        .command(installation.program("initdb"))
        .args(["--username=postgres", "--auth=trust", "--encoding=UTF8"])
        .args(["--locale=C", "--no-instructions", "--pgdata"])
        .arg(data)
        .stdin(lock)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(message))
}

fn template_name(version: &str) -> String {
    let words: Vec<_> = version
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    format!("template-{}", words.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::UnixAccount;
    use std::thread;

    #[test]
    fn incomplete_template_is_replaced_once() {
        let directory = tempfile::tempdir().unwrap();
        let account = UnixAccount::unprivileged();
        account.take_ownership(directory.path()).unwrap();
        let work_directory = WorkDirectory::open(directory.path(), account);
        let installation = Installation::find().unwrap_or_else(|error| panic!("{error}"));

        let path = work_directory.path().join(template_name(&installation.version()));
        for leftover in [path.with_extension("unfinished"), path.clone()] {
            fs::create_dir(&leftover).unwrap();
            fs::write(leftover.join("postgresql.conf"), "half a l").unwrap();
        }

        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| template(&work_directory, &installation));
            }
        });
        assert!(path.join("PG_VERSION").is_file());
        assert!(path.join("global/pg_control").is_file());
        assert!(!path.with_extension("unfinished").exists());
    }

    #[test]
    fn template_name_contains_the_version() {
        assert_eq!(
            template_name("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"),
            "template-postgres-PostgreSQL-15-18-Debian-15-18-0-deb12u1"
        );
    }
}
