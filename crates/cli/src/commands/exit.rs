//! The exit codes of all commands.

use std::process::ExitCode;

/// The result of a command, for scripts and supervisors. The large codes are those of `sysexits.h`, which systemd
/// knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    /// The arguments must change.
    WrongArguments = 2,
    TimedOut = 3,
    /// A server does not answer now.
    Unreachable = 4,
    /// The database or something else that is needed cannot be reached now.
    Unavailable = 69,
    /// A setting, a key file, or what they name must change.
    Configuration = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fmt::Write, fs, path::Path};

    use super::*;

    const ALL: [Exit; 7] = [
        Exit::Done,
        Exit::Failed,
        Exit::WrongArguments,
        Exit::TimedOut,
        Exit::Unreachable,
        Exit::Unavailable,
        Exit::Configuration,
    ];

    /// What the page says about it: its meaning, and what to do.
    fn row(exit: Exit) -> (&'static str, &'static str) {
        match exit {
            Exit::Done => ("the command did what it should, or the server was stopped", ""),
            Exit::Failed => (
                "something was refused or failed, at least for one of the batches; with `--wait`, a batch is invalid",
                "read the error",
            ),
            Exit::WrongArguments => ("the arguments are wrong", "read the error"),
            Exit::TimedOut => {
                ("`--timeout` has passed before all batches ended", "look at them, or wait again")
            }
            Exit::Unreachable => ("the server does not answer, or is too busy", "try again"),
            Exit::Unavailable => (
                "something is not available: the database, the port, or a lease that another instance has",
                "try again",
            ),
            Exit::Configuration => (
                "the configuration is wrong: a setting, a key file, a password, a database of another ledger",
                "change it first",
            ),
        }
    }

    fn page() -> String {
        let mut page = "# Exit codes\n\nOf all commands. This page is generated from \
            `crates/cli/src/commands/exit.rs`: `UPDATE_DOCS=1 cargo test\n-p grid-batch exit_codes`.\n\n\
            | exit code | meaning | what to do |\n|---|---|---|\n"
            .to_owned();
        for exit in ALL {
            let (meaning, action) = row(exit);
            writeln!(page, "| {} | {meaning} | {action} |", exit as u8).unwrap();
        }
        page.replace("|  |", "| |")
    }

    #[test]
    fn reference_of_exit_codes_is_up_to_date() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/exit-codes.md");
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&file, page()).unwrap();
        }
        let present = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(present, page(), "UPDATE_DOCS=1 cargo test -p grid-batch exit_codes updates it");
    }
}
