//! The program `with-postgres`: what it gives the command, what it says, what it leaves behind.
#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use diesel::{Connection, PgConnection, RunQueryDsl, dsl::sql, select, sql_types::Text};
use grid_batch_test_postgres::{TestServer, URL_VARIABLE};

fn with_postgres(command: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_with-postgres"));
    program.arg("--").args(command).env_remove(URL_VARIABLE);
    program
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_commands_exit_code_is_its_own() {
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143)] {
        let output = with_postgres(&["sh", "-c", script]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    }
}

#[test]
fn it_says_what_was_used_and_for_how_much() {
    let output = with_postgres(&["true"]).output().unwrap();
    let said = stderr(&output);
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[0].starts_with("with-postgres: PostgreSQL "), "{said}");
    assert!(lines[0].contains("thrown away afterwards, from /"), "{said}");
    assert_eq!(lines[1], "with-postgres: 0 databases were made on it for 0 tests");
}

#[test]
fn a_server_that_is_named_is_used() {
    let server = TestServer::start();
    let output = with_postgres(&["sh", "-c", "echo $GRID_BATCH_TEST_DATABASE_URL"])
        .env(URL_VARIABLE, server.url())
        .output()
        .unwrap();
    assert_eq!(output.stdout, format!("{}\n", server.url()).into_bytes());
    assert!(stderr(&output).contains("named by GRID_BATCH_TEST_DATABASE_URL"));
}

#[test]
fn a_name_that_is_no_url_is_refused() {
    let output = with_postgres(&["true"]).env(URL_VARIABLE, "mysql://h/d").output().unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("must be a URL: postgresql://"));
}

#[test]
fn a_killed_process_leaves_neither_server_nor_directory() {
    let mut process = with_postgres(&["sh", "-c", "echo $GRID_BATCH_TEST_DATABASE_URL; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let data = data_directory(&first_line(&mut process));
    let server = server_id(&data);
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

fn server_id(data: &Path) -> String {
    let file = fs::read_to_string(data.join("postmaster.pid")).unwrap();
    file.lines().next().unwrap().to_owned()
}

fn is_running(id: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-0", id]).stderr(Stdio::null());
    kill.status().unwrap().success()
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
