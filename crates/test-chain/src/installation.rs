use std::{
    env,
    path::{Path, PathBuf},
};

use crate::ChainError;

/// The environment variable that names anvil's program.
const VARIABLE: &str = "GRID_BATCH_TEST_ANVIL";
const PROGRAM: &str = "anvil";

/// Where anvil's program is: what `GRID_BATCH_TEST_ANVIL` names, else the one on the PATH, else the
/// one that `scripts/test` put into the build directory that we run from.
pub fn find_anvil() -> Result<PathBuf, ChainError> {
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return named(path.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let on_the_path = env::split_paths(&path).map(|directory| directory.join(PROGRAM));
    let ourselves = env::current_exe().unwrap_or_default();
    let brought = ourselves.ancestors().map(brought_into);
    on_the_path
        .chain(brought)
        .find(|path| path.is_file())
        .ok_or_else(|| ChainError::NotInstalled { package: package() })
}

fn named(path: PathBuf) -> Result<PathBuf, ChainError> {
    if path.is_file() { Ok(path) } else { Err(ChainError::NoProgram { path }) }
}

fn brought_into(build_directory: &Path) -> PathBuf {
    let modules = build_directory.join("anvil/node_modules");
    modules.join(package()).join("bin").join(PROGRAM)
}

/// The package's name, which speaks of systems and processors as Node does.
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
    fn what_is_missing_is_said() {
        let message = ChainError::NotInstalled { package: package() }.to_string();
        for part in ["scripts/test", "npm install @foundry-rs/anvil-", VARIABLE] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_name_that_is_no_file_is_refused() {
        let error = named("/nowhere/anvil".into()).unwrap_err();
        assert!(error.to_string().contains("\"/nowhere/anvil\""), "{error}");
    }
}
