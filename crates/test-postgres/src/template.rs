use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::{installation::Installation, workplace::Workplace};

/// The data directory that every new server starts with a copy of; made once for each version of
/// PostgreSQL, because making one takes a second and copying it does not.
pub(crate) fn template(workplace: &Workplace, installation: &Installation) -> PathBuf {
    let path = workplace.path().join(name(&installation.version()));
    make_once(&path, workplace, installation)
        .unwrap_or_else(|error| panic!("cannot make the template {}: {error}", path.display()));
    path
}

fn make_once(path: &Path, workplace: &Workplace, installation: &Installation) -> io::Result<()> {
    let lock = File::create(path.with_extension("lock"))?;
    workplace.account().take_over(&path.with_extension("lock"))?;
    lock.lock()?;
    if path.join("PG_VERSION").exists() {
        return Ok(());
    }
    // Only what is finished gets the name that is looked for: being killed leaves nothing half made.
    let unfinished = path.with_extension("unfinished");
    for leftover in [&unfinished, path] {
        remove(leftover)?;
    }
    initdb(&unfinished, lock, workplace, installation)?;
    fs::rename(unfinished, path)
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// `initdb` holds the lock as its standard input: should we be killed, nobody else begins before
/// it has ended.
fn initdb(
    data: &Path,
    lock: File,
    workplace: &Workplace,
    installation: &Installation,
) -> io::Result<()> {
    let output = workplace
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

fn name(version: &str) -> String {
    let words: Vec<_> = version
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    format!("template-{}", words.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use std::thread;

    #[test]
    fn a_half_made_template_is_made_anew_and_only_once() {
        let directory = tempfile::tempdir().unwrap();
        let account = Account::unprivileged();
        account.take_over(directory.path()).unwrap();
        let workplace = Workplace::open(directory.path(), account);
        let installation = Installation::find().unwrap_or_else(|missing| panic!("{missing}"));

        let path = workplace.path().join(name(&installation.version()));
        for leftover in [path.with_extension("unfinished"), path.clone()] {
            fs::create_dir(&leftover).unwrap();
            fs::write(leftover.join("postgresql.conf"), "half a l").unwrap();
        }

        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| template(&workplace, &installation));
            }
        });
        assert!(path.join("PG_VERSION").is_file());
        assert!(path.join("global/pg_control").is_file());
        assert!(!path.with_extension("unfinished").exists());
    }

    #[test]
    fn each_version_has_its_template() {
        assert_eq!(
            name("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"),
            "template-postgres-PostgreSQL-15-18-Debian-15-18-0-deb12u1"
        );
    }
}
