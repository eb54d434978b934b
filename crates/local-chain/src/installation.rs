use std::{
    env,
    path::{Path, PathBuf},
};

use crate::{ChainError, Node};

/// The environment variable with the path of anvil's program.
const ANVIL_VARIABLE: &str = "GRID_BATCH_TEST_ANVIL";
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

/// A node that `scripts/test` installs into the build directory.
#[derive(Debug, Clone, Copy)]
struct Installed {
    /// The environment variable with the path of its program.
    variable: &'static str,
    /// The program in the build directory.
    program: &'static str,
    name: &'static str,
    how: &'static str,
}

const HARDHAT: Installed = Installed {
    variable: "GRID_BATCH_TEST_HARDHAT",
    program: "hardhat/node_modules/.bin/hardhat",
    name: "hardhat, an EVM node in Node.js,",
    how: "`npm install hardhat@2` and set GRID_BATCH_TEST_HARDHAT to `node_modules/.bin/hardhat`",
};
const GANACHE: Installed = Installed {
    variable: "GRID_BATCH_TEST_GANACHE",
    program: "ganache/node_modules/.bin/ganache",
    name: "ganache, an EVM node in Node.js,",
    how: "`npm install ganache@7` and set GRID_BATCH_TEST_GANACHE to `node_modules/.bin/ganache`",
};
const PY_EVM: Installed = Installed {
    variable: "GRID_BATCH_TEST_PY_EVM",
    program: "py-evm/bin/python",
    name: "py-evm, the EVM in Python,",
    how: "`pip install py-evm eth-account` in an environment and set GRID_BATCH_TEST_PY_EVM to its `bin/python`",
};

/// The path of a node's program: the value of its environment variable, else the one that `scripts/test` installed into
/// the build directory of this process.
pub fn find_node(node: Node) -> Result<PathBuf, ChainError> {
    let Installed { variable, program, name, how } = match node {
        Node::Anvil => return find_anvil(),
        Node::Hardhat => HARDHAT,
        Node::Ganache => GANACHE,
        Node::PyEvm => PY_EVM,
    };
    if let Some(path) = configured(variable)? {
        return Ok(path);
    }
    installed(program.into())
        .find(|path| path.is_file())
        .ok_or(ChainError::NodeNotInstalled { name, how })
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
