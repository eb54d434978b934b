//! `man`: the manual pages.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_mangen::Man;

use super::{failure::Failure, print::print_stdout, program};

pub(crate) fn command() -> Command {
    Command::new("man")
        .about("Prints the manual page, or writes the pages of all commands to a folder")
        .long_about(
            "Prints the manual page of grid-batch, or writes the pages of all commands to a folder, \
             such as ~/.local/share/man/man1. `grid-batch man | man -l -` shows the page.",
        )
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Folder for the pages; it is created if it does not exist"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let Some(folder) = matches.get_one::<PathBuf>("output") else {
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
