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

/// The programs are in none of the places where they are looked for.
#[derive(Debug)]
pub(crate) struct NotInstalled {
    places: Vec<PathBuf>,
}

impl Installation {
    /// The one on the path, else the newest where packages put them.
    pub(crate) fn find() -> Result<Self, NotInstalled> {
        let path = env::var_os("PATH").unwrap_or_default();
        Self::among(env::split_paths(&path).chain(packaged()).collect())
    }

    fn among(places: Vec<PathBuf>) -> Result<Self, NotInstalled> {
        let found = places.iter().find_map(|place| programs_in(place));
        found.map(|bin| Self { bin }).ok_or(NotInstalled { places })
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// The version, with what the packager added to it.
    pub(crate) fn version(&self) -> String {
        let output = Command::new(self.program("postgres"))
            .arg("--version")
            .output()
            .unwrap_or_else(|error| panic!("{self}/postgres does not run: {error}"));
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
            "a PostgreSQL server is needed, and its programs are not installed.\n\
             Install them (`apt-get install postgresql`, `dnf install postgresql-server`, \
             `brew install postgresql`),\n\
             or name a server to test on: {URL_VARIABLE}=postgresql://user@host/database\n\
             Neither where packages put them nor on the path are `initdb` and `postgres`; looked in:"
        )?;
        self.places.iter().try_for_each(|place| writeln!(f, "  {}", place.display()))
    }
}

/// The directory where the programs really are: a link to one of them says nothing of its
/// neighbours.
fn programs_in(place: &Path) -> Option<PathBuf> {
    let postgres = place.join("postgres").canonicalize().ok()?;
    let bin = postgres.parent()?;
    bin.join("initdb").is_file().then(|| bin.to_owned())
}

/// Where packages put the programs when they keep them off the path, newest version first.
fn packaged() -> Vec<PathBuf> {
    [
        ("/usr/lib/postgresql", ""),
        ("/usr", "pgsql-"),
        ("/usr/lib", "postgresql"),
        ("/usr/libexec", "postgresql"),
        ("/opt/homebrew/opt", "postgresql@"),
        ("/usr/local/opt", "postgresql@"),
    ]
    .into_iter()
    .flat_map(|(parent, prefix)| versions(Path::new(parent), prefix))
    .flat_map(|version| [version.join("bin"), version])
    .collect()
}

fn versions(parent: &Path, prefix: &str) -> Vec<PathBuf> {
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
    fn what_is_missing_is_said() {
        let places = vec![PathBuf::from("/nowhere"), PathBuf::from("/nor/here")];
        let message = Installation::among(places).unwrap_err().to_string();
        for part in [
            "apt-get install postgresql",
            "GRID_BATCH_TEST_DATABASE_URL=postgresql://",
            "  /nowhere\n",
            "  /nor/here\n",
        ] {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    }

    #[test]
    fn one_program_alone_is_no_installation() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("postgres"), "").unwrap();
        assert!(Installation::among(vec![directory.path().to_owned()]).is_err());
    }

    #[test]
    fn the_newest_version_comes_first() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["pg-9", "pg-17", "pg-16", "pg-old", "17"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let found = versions(directory.path(), "pg-");
        assert_eq!(found, ["pg-17", "pg-16", "pg-9"].map(|name| directory.path().join(name)));
    }
}
