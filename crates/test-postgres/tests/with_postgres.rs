//! The program `with-postgres`: the command's environment, its output, its cleanup.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use diesel::{Connection, PgConnection, RunQueryDsl, dsl::sql, select, sql_types::Text};
use grid_batch_test_postgres::{PostgresServer, URL_VARIABLE};

fn with_postgres(command: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_with-postgres"));
    program.arg("--").args(command).env_remove(URL_VARIABLE);
    program
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn exit_code_of_the_command_is_returned() {
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143)] {
        let output = with_postgres(&["sh", "-c", script]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    }
}

#[test]
fn server_and_number_of_databases_are_reported() {
    let output = with_postgres(&["true"]).output().unwrap();
    let reported = stderr(&output);
    let lines: Vec<_> = reported.lines().collect();
    assert!(lines[0].starts_with("with-postgres: PostgreSQL "), "{reported}");
    assert!(lines[0].contains("temporary, programs in /"), "{reported}");
    assert_eq!(lines[1], "with-postgres: created 0 databases for 0 tests");
}

#[test]
fn server_from_the_environment_is_used() {
    let server = PostgresServer::start();
    let output = with_postgres(&["sh", "-c", "echo $GRID_BATCH_TEST_DATABASE_URL"])
        .env(URL_VARIABLE, server.url())
        .output()
        .unwrap();
    assert_eq!(output.stdout, format!("{}\n", server.url()).into_bytes());
    assert!(stderr(&output).contains("from GRID_BATCH_TEST_DATABASE_URL"));
}

#[test]
fn invalid_url_in_the_environment_is_rejected() {
    let output = with_postgres(&["true"]).env(URL_VARIABLE, "mysql://h/d").output().unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("must be a URL: postgresql://"));
}

#[test]
fn killed_process_leaves_no_server_or_directory() {
    let mut process = with_postgres(&["sh", "-c", "echo $GRID_BATCH_TEST_DATABASE_URL; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let data = data_directory(&first_line(&mut process));
    let server = server_process_id(&data);
    assert!(is_running(&server));

    process.kill().unwrap();
    process.wait().unwrap();

    let directory = data.parent().unwrap();
    wait_until("the directory is removed", || !directory.exists());
    wait_until("the server has ended", || !is_running(&server));
}

fn first_line(process: &mut Child) -> String {
    let mut line = String::new();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn data_directory(url: &str) -> PathBuf {
    let mut connection = PgConnection::establish(url).unwrap();
    let directory: String = select(sql::<Text>("current_setting('data_directory')"))
        .get_result(&mut connection)
        .unwrap();
    directory.into()
}

fn server_process_id(data: &Path) -> String {
    let file = fs::read_to_string(data.join("postmaster.pid")).unwrap();
    file.lines().next().unwrap().to_owned()
}

fn is_running(process_id: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-0", process_id]).stderr(Stdio::null());
    kill.status().unwrap().success()
}

fn wait_until(description: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "timed out: {description}");
        thread::sleep(Duration::from_millis(5));
    }
}
