//! `completions`: completion scripts for shells.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use super::{failure::Failure, print::print_stdout, program};

pub(crate) fn command() -> Command {
    Command::new("completions")
        .about("Prints a completion script for a shell")
        .long_about(
            "Prints a completion script for a shell. For bash, write it to \
             ~/.local/share/bash-completion/completions/grid-batch; for zsh, to _grid-batch in a folder \
             of $fpath; for fish, to ~/.config/fish/completions/grid-batch.fish.",
        )
        .arg(Arg::new("shell").required(true).value_parser(value_parser!(Shell)).help("The shell"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let shell: &Shell =
        matches.get_one("shell").ok_or_else(|| Failure::usage("the shell is missing"))?;
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut program(), "grid-batch", &mut script);
    print_stdout(String::from_utf8_lossy(&script).trim_end());
    Ok(ExitCode::SUCCESS)
}
