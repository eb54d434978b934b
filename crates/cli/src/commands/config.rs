//! `config`: the configuration as a file, and the mistakes in it.

use std::{
    fs::{self, File},
    io,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};

use grid_batch_service::{Config, LedgerConfig, settings_reference};

use crate::commands::{
    failure::Failure,
    flags::{self, All, SettingFlags},
    print::{print_stderr, print_stdout},
    private_file,
};

/// Prints, checks or writes the configuration
///
/// Without a command, prints the effective configuration, from the file, the environment and the flags, as a
/// configuration file with help for every setting. `config check` finds mistakes in it, and `config init` writes a new
/// file.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = flags::OF_SETTINGS)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: Option<ConfigCommand>,
    /// Writes this file; only its owner can read it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    written: WrittenArgs,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Prints the effective configuration
    Show(PrintedArgs),
    /// Checks the configuration; the exit code is 78 if a server could not start with it
    Check(SettingFlags<All>),
    /// Writes a configuration file to edit, with the settings that most servers need
    ///
    /// Defaults are comments, so that a later release can improve them. Values that differ from the defaults are taken
    /// over: with --force, a file in which every setting is written is reduced to these.
    Init(InitArgs),
    /// Prints what each setting does, and when to change it
    Reference,
}

#[derive(Debug, Args)]
struct InitArgs {
    /// Writes this file; only its owner can read it
    #[arg(long, value_name = "FILE", default_value = Config::FILE)]
    output: PathBuf,
    /// Also writes all other settings, as comments
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    written: WrittenArgs,
}

#[derive(Debug, Args)]
struct WrittenArgs {
    /// Replaces the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
    #[command(flatten)]
    printed: PrintedArgs,
}

#[derive(Debug, Args)]
struct PrintedArgs {
    /// Prints secrets too, instead of ***. Without it, give them again where the file is used: in files, such as
    /// database = { file = "PATH" }, or in the environment
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    settings: SettingFlags<All>,
}

pub(crate) fn run(args: &ConfigArgs) -> Result<ExitCode, Failure> {
    match (&args.command, &args.output) {
        (Some(ConfigCommand::Check(settings)), _) => return check(settings),
        (Some(ConfigCommand::Init(InitArgs { output, all, written })), _) => {
            let PrintedArgs { settings, show_secrets } = &written.printed;
            let text = settings.load()?.file_to_edit(*all, *show_secrets);
            written.write(output, &format!("{HEAD}{text}"))?;
            let file = output.display();
            print_stdout(format_args!("{file} is written; set ledger.kind and ledger.urls in it"));
        }
        (Some(ConfigCommand::Reference), _) => print_stdout(settings_reference().trim_end()),
        (Some(ConfigCommand::Show(printed)), _) => printed.print()?,
        (None, Some(file)) => {
            args.written.write(file, args.written.printed.text()?.trim_start())?
        }
        (None, None) => args.written.printed.print()?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The first lines of a file to edit.
const HEAD: &str =
    "# Settings of grid-batch. A comment is a default: write a setting without # to change it.
# `grid-batch config reference` describes all settings, `grid-batch config check` finds mistakes.

";

impl WrittenArgs {
    /// Writes the file as a whole or not at all.
    fn write(&self, file: &Path, text: &str) -> Result<(), Failure> {
        if !self.force && fs::symlink_metadata(file).is_ok() {
            let file = file.display();
            return Err(Failure::new(format!("the file {file} exists; add --force to replace it")));
        }
        let mut temporary = file.as_os_str().to_owned();
        temporary.push(format!(".{}.tmp", std::process::id()));
        let temporary = PathBuf::from(temporary);
        let written =
            private_file::write_new(&temporary, text).and_then(|()| fs::rename(&temporary, file));
        written.map_err(|error| {
            // The error of the write counts; the file may not be there.
            let _ = fs::remove_file(&temporary);
            Failure::new(format!("the file {} cannot be written: {error}", file.display()))
        })
    }
}

impl PrintedArgs {
    fn print(&self) -> Result<(), Failure> {
        refuse_to_print_into(&self.settings.config_file())?;
        print_stdout(self.text()?.trim_end());
        Ok(())
    }

    fn text(&self) -> Result<String, Failure> {
        let config = self.settings.load()?;
        Ok(if self.show_secrets { config.with_secrets().to_string() } else { config.to_string() })
    }
}

fn check(settings: &SettingFlags<All>) -> Result<ExitCode, Failure> {
    let config = settings.load()?;
    if config.ledger.kind.is_none() {
        return Err(Failure::configuration(format!(
            "ledger.kind is not set; set it to {}, and ledger.urls to its nodes",
            flags::ledger_kinds()
        )));
    }
    if config.lacks_ledger_name() {
        let rule = LedgerConfig::NAME_RULE;
        return Err(Failure::configuration(format!("ledger.name is not set; {rule}")));
    }
    for old_name in config.old_names() {
        print_stderr(format_args!("grid-batch: {old_name}"));
    }
    for secret in config.readable_secrets() {
        print_stderr(format_args!("grid-batch: {}: {secret}", secret.name()));
    }
    print_stdout("the configuration is valid");
    Ok(ExitCode::SUCCESS)
}

/// A shell that redirects the output into the configuration file has emptied it before this command can read it: the
/// defaults would be printed.
fn refuse_to_print_into(file: &Path) -> Result<(), Failure> {
    if !is_standard_output(file) {
        return Ok(());
    }
    let file = file.display();
    Err(Failure::new(format!(
        "standard output is the configuration file {file} itself, which the shell has emptied if it was \
         redirected with >; nothing is printed. To write the file, use --output {file} --force"
    )))
}

fn is_standard_output(file: &Path) -> bool {
    let stdout = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    match (stdout.and_then(|stdout| stdout.metadata()), fs::metadata(file)) {
        (Ok(stdout), Ok(file)) => {
            file.is_file() && (stdout.dev(), stdout.ino()) == (file.dev(), file.ino())
        }
        _ => false,
    }
}
