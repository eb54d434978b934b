//! Runs a command with a PostgreSQL server for its tests, and says what it was used for.

use std::{
    env,
    ffi::OsString,
    os::unix::process::ExitStatusExt,
    process::{Command, ExitCode, ExitStatus},
};

use grid_batch_test_postgres::{Tally, TestServer, URL_VARIABLE};

const USAGE: &str = "\
usage: with-postgres -- <command> [<argument>...]
       with-postgres --check

Runs the command with GRID_BATCH_TEST_DATABASE_URL naming a PostgreSQL server: the one it names
already, else a new one that is thrown away afterwards. With --check, says by its exit code whether
there is anything to run one with.";

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    match arguments.next() {
        Some(option) if option == "--check" => check(),
        Some(option) if option == "--" => match arguments.next() {
            Some(program) => run(program, arguments),
            None => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn check() -> ExitCode {
    match TestServer::is_available() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn run(program: OsString, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let server = TestServer::named_or_new();
    eprintln!("with-postgres: {}", server.description());

    let tally = Tally::begin(&server);
    let status = Command::new(&program).args(arguments).env(URL_VARIABLE, server.url()).status();
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            eprintln!("with-postgres: {} does not run: {error}", program.display());
            return ExitCode::from(127);
        }
    };

    let (databases, tests) = tally.databases_and_tests();
    eprintln!("with-postgres: {databases} databases were made on it for {tests} tests");
    exit_code(status)
}

/// The command's own, or what a shell makes of the signal that ended it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
