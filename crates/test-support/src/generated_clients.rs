//! Clients that generators make from the description of the interface.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// The environment variable with the path of a folder with the generators.
const VARIABLE: &str = "GRID_BATCH_TEST_CLIENT_GENERATORS";

/// The generators, and a folder with programs that use what they generate.
pub struct GeneratedClients {
    generators: PathBuf,
    folder: tempfile::TempDir,
}

impl GeneratedClients {
    /// Copies these programs, and the description of the interface.
    pub fn new(programs: &Path, description: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(programs).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        fs::write(folder.path().join("openapi.json"), description).unwrap();
        let generators = generators();
        symlink(generators.join("node_modules"), folder.path().join("node_modules")).unwrap();
        Self { generators, folder }
    }

    /// The folder of the programs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a program that npm or pip has installed.
    pub fn tool(&self, path: &str) -> PathBuf {
        self.generators.join(path)
    }

    /// Runs a program in the folder, and returns its output. It must succeed.
    pub fn run<S: AsRef<OsStr>>(&self, program: impl AsRef<OsStr>, arguments: &[S]) -> String {
        let mut command = Command::new(program);
        let output = command.current_dir(self.folder.path()).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }
}

fn generators() -> PathBuf {
    let path = env::var_os(VARIABLE).filter(|path| !path.is_empty());
    path.map(PathBuf::from).or_else(installed).unwrap_or_else(|| {
        panic!(
            "the generators of clients were not found; `scripts/test` installs them, or set {VARIABLE} to the path of \
             a folder with @hey-api/openapi-ts and what clients/typescript/package.json names in node_modules, and \
             what clients/python/pyproject.toml names in a virtual environment `python`"
        )
    })
}

/// Where `scripts/test` installed them, in the build directory of this process.
fn installed() -> Option<PathBuf> {
    let this_program = env::current_exe().ok()?;
    let folders = this_program.ancestors().map(|it| it.join("client-generators"));
    folders.into_iter().find(|folder| folder.is_dir())
}
