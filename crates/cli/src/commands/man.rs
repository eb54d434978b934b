//! `man`: the manual pages.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::Args;
use clap_mangen::Man;

use super::{failure::Failure, print::print_stdout, program};

/// Prints the manual page, or writes the pages of all commands to a folder
///
/// `grid-batch man | man -l -` shows the page. A folder for the pages is such as ~/.local/share/man/man1.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages; it is created if it does not exist
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs) -> Result<ExitCode, Failure> {
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        Man::new(program()).render(&mut page)?;
        print_stdout(String::from_utf8_lossy(&page).trim_end());
        return Ok(ExitCode::SUCCESS);
    };
    let write = || {
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(program(), folder)
    };
    write().map_err(|error| {
        Failure::new(format!("the pages cannot be written to {}: {error}", folder.display()))
    })?;
    Ok(ExitCode::SUCCESS)
}
