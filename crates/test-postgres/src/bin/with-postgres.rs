//! Runs a command with a PostgreSQL server for its tests and reports how much the tests used it.

use std::{
    env,
    ffi::OsString,
    os::unix::process::ExitStatusExt,
    process::{Command, ExitCode, ExitStatus},
};

use grid_batch_test_postgres::{PostgresServer, URL_VARIABLE, UsageCounter};

const USAGE: &str = "\
usage: with-postgres -- <command> [<argument>...]
       with-postgres --check

Runs the command with GRID_BATCH_TEST_DATABASE_URL set to the URL of a PostgreSQL server. If the
variable is set already, that server is used. Otherwise a new server is started, and it is removed
when the command has ended.

With --check, runs nothing and exits with 0 if a server can be used or started, else with 1.";

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
    if PostgresServer::is_available() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(program: OsString, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let server = PostgresServer::from_env_or_start();
    eprintln!("with-postgres: {}", server.description());

    let usage = UsageCounter::start(&server);
    let status = Command::new(&program).args(arguments).env(URL_VARIABLE, server.url()).status();
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            eprintln!("with-postgres: cannot run {}: {error}", program.display());
            return ExitCode::from(127);
        }
    };

    let (databases, tests) = usage.databases_and_tests();
    eprintln!("with-postgres: created {databases} databases for {tests} tests");
    exit_code(status)
}

/// The command's exit code, or the code that a shell reports for a command that was ended by a signal.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
