use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::URL_VARIABLE;

/// PostgreSQL's server programs on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    bin: PathBuf,
}

/// The programs are in none of the searched directories.
#[derive(Debug)]
pub(crate) struct NotInstalled {
    searched: Vec<PathBuf>,
}

impl Installation {
    /// Finds the installation on the `PATH`, or else the newest in the directories that packages use.
    pub(crate) fn find() -> Result<Self, NotInstalled> {
        let path = env::var_os("PATH").unwrap_or_default();
        Self::find_in(env::split_paths(&path).chain(package_directories()).collect())
    }

    fn find_in(directories: Vec<PathBuf>) -> Result<Self, NotInstalled> {
        let found = directories.iter().find_map(|directory| bin_directory(directory));
        found.map(|bin| Self { bin }).ok_or(NotInstalled { searched: directories })
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// The version, with the packager's suffix.
    pub(crate) fn version(&self) -> String {
        let output = Command::new(self.program("postgres"))
            .arg("--version")
            .output()
            .unwrap_or_else(|error| panic!("cannot run {self}/postgres: {error}"));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bin.display().fmt(f)
    }
}

impl fmt::Display for NotInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "the tests need a PostgreSQL server, and its programs are not installed.\n\
             Install them (`apt-get install postgresql`, `dnf install postgresql-server`, \
             `brew install postgresql`),\n\
             or name a server to test on: {URL_VARIABLE}=postgresql://user@host/database\n\
             `initdb` and `postgres` were not found in:"
        )?;
        self.searched.iter().try_for_each(|directory| writeln!(f, "  {}", directory.display()))
    }
}

/// The directory that contains the programs. Links are resolved, because a directory may contain a
/// link to `postgres` and none to `initdb`.
fn bin_directory(directory: &Path) -> Option<PathBuf> {
    let postgres = directory.join("postgres").canonicalize().ok()?;
    let bin = postgres.parent()?;
    bin.join("initdb").is_file().then(|| bin.to_owned())
}

/// The directories outside the `PATH` where packages put the programs, newest version first.
fn package_directories() -> Vec<PathBuf> {
    [
        ("/usr/lib/postgresql", ""),
        ("/usr", "pgsql-"),
        ("/usr/lib", "postgresql"),
        ("/usr/libexec", "postgresql"),
        ("/opt/homebrew/opt", "postgresql@"),
        ("/usr/local/opt", "postgresql@"),
    ]
    .into_iter()
    .flat_map(|(parent, prefix)| version_directories(Path::new(parent), prefix))
    .flat_map(|version| [version.join("bin"), version])
    .collect()
}

/// The subdirectories whose name is the prefix and a version, newest version first.
fn version_directories(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let version = |name: &str| name.strip_prefix(prefix)?.parse::<u32>().ok();
    let mut found: Vec<_> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path())))
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_says_what_to_install() {
        let directories = vec![PathBuf::from("/missing"), PathBuf::from("/also/missing")];
        let message = Installation::find_in(directories).unwrap_err().to_string();
        for part in [
            "apt-get install postgresql",
            "GRID_BATCH_TEST_DATABASE_URL=postgresql://",
            "  /missing\n",
            "  /also/missing\n",
        ] {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    }

    #[test]
    fn directory_without_initdb_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("postgres"), "").unwrap();
        assert!(Installation::find_in(vec![directory.path().to_owned()]).is_err());
    }

    #[test]
    fn newest_version_comes_first() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["pg-9", "pg-17", "pg-16", "pg-old", "17"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let found = version_directories(directory.path(), "pg-");
        assert_eq!(found, ["pg-17", "pg-16", "pg-9"].map(|name| directory.path().join(name)));
    }
}
