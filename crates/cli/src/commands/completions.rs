//! `completions`: completion scripts for shells.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use super::{failure::Failure, print::print_stdout, program};

/// Prints a completion script for a shell
///
/// For bash, write it to `~/.local/share/bash-completion/completions/grid-batch`; for zsh, to `_grid-batch` in a folder
/// of $fpath; for fish, to `~/.config/fish/completions/grid-batch.fish`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program(), "grid-batch", &mut script);
    print_stdout(String::from_utf8_lossy(&script).trim_end());
    Ok(ExitCode::SUCCESS)
}
