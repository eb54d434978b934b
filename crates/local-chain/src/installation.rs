use std::{
    env,
    path::{Path, PathBuf},
};

use crate::ChainError;

/// The environment variable with the path of anvil's program.
const ANVIL_VARIABLE: &str = "GRID_BATCH_TEST_ANVIL";
/// The environment variable with the path of hardhat's program.
const HARDHAT_VARIABLE: &str = "GRID_BATCH_TEST_HARDHAT";
const ANVIL: &str = "anvil";

/// The path of anvil's program: the value of `GRID_BATCH_TEST_ANVIL`, else the one on the PATH, else
/// the one that `scripts/test` installed into the build directory of this process.
pub fn find_anvil() -> Result<PathBuf, ChainError> {
    if let Some(path) = configured(ANVIL_VARIABLE)? {
        return Ok(path);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|directory| directory.join(ANVIL));
    on_path
        .chain(installed(Path::new("anvil/node_modules").join(package()).join("bin").join(ANVIL)))
        .find(|path| path.is_file())
        .ok_or_else(|| ChainError::NotInstalled { package: package() })
}

/// The path of hardhat's program: the value of `GRID_BATCH_TEST_HARDHAT`, else the one that
/// `scripts/test` installed into the build directory of this process.
pub fn find_hardhat() -> Result<PathBuf, ChainError> {
    if let Some(path) = configured(HARDHAT_VARIABLE)? {
        return Ok(path);
    }
    installed("hardhat/node_modules/.bin/hardhat".into())
        .find(|path| path.is_file())
        .ok_or(ChainError::HardhatNotInstalled)
}

/// The program that this environment variable names, if it is set.
fn configured(variable: &'static str) -> Result<Option<PathBuf>, ChainError> {
    let path = env::var_os(variable).filter(|path| !path.is_empty());
    path.map(|path| existing(variable, path.into())).transpose()
}

fn existing(variable: &'static str, path: PathBuf) -> Result<PathBuf, ChainError> {
    if path.is_file() { Ok(path) } else { Err(ChainError::NoProgram { variable, path }) }
}

/// Where `scripts/test` may have installed a program, with this path in the build directory.
fn installed(program: PathBuf) -> impl Iterator<Item = PathBuf> {
    let this_program = env::current_exe().unwrap_or_default();
    let directories: Vec<PathBuf> = this_program.ancestors().map(Path::to_owned).collect();
    directories.into_iter().map(move |directory| directory.join(&program))
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
        for part in ["scripts/test", "npm install @foundry-rs/anvil-", ANVIL_VARIABLE] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn path_that_is_not_a_file_is_refused() {
        let error = existing(ANVIL_VARIABLE, "/nowhere/anvil".into()).unwrap_err();
        let expected = "GRID_BATCH_TEST_ANVIL is \"/nowhere/anvil\", which is not a file";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
