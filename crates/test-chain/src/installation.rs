use std::{
    env,
    path::{Path, PathBuf},
};

use crate::ChainError;

/// The environment variable with the path of anvil's program.
const VARIABLE: &str = "GRID_BATCH_TEST_ANVIL";
const PROGRAM: &str = "anvil";

/// The path of anvil's program: the value of `GRID_BATCH_TEST_ANVIL`, else the one on the PATH, else
/// the one that `scripts/test` installed into the build directory of this process.
pub fn find_anvil() -> Result<PathBuf, ChainError> {
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return existing(path.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|directory| directory.join(PROGRAM));
    let this_program = env::current_exe().unwrap_or_default();
    let installed = this_program.ancestors().map(installed_in);
    on_path
        .chain(installed)
        .find(|path| path.is_file())
        .ok_or_else(|| ChainError::NotInstalled { package: package() })
}

fn existing(path: PathBuf) -> Result<PathBuf, ChainError> {
    if path.is_file() { Ok(path) } else { Err(ChainError::NoProgram { path }) }
}

fn installed_in(build_directory: &Path) -> PathBuf {
    let modules = build_directory.join("anvil/node_modules");
    modules.join(package()).join("bin").join(PROGRAM)
}

/// The npm package for this machine, with npm's names of systems and processors.
fn package() -> String {
    let system = if env::consts::OS == "macos" { "darwin" } else { env::consts::OS };
    let processor = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("@foundry-rs/anvil-{system}-{processor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_says_how_to_install_anvil() {
        let message = ChainError::NotInstalled { package: package() }.to_string();
        for part in ["scripts/test", "npm install @foundry-rs/anvil-", VARIABLE] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn path_that_is_not_a_file_is_refused() {
        let error = existing("/nowhere/anvil".into()).unwrap_err();
        assert!(error.to_string().contains("\"/nowhere/anvil\""), "{error}");
    }
}
