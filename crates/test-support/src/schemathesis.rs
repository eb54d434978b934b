//! Requests made from the description of the interface, by Schemathesis.

use std::{
    env, fs,
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Output},
};

/// The environment variable with the path of the program.
const VARIABLE: &str = "GRID_BATCH_TEST_SCHEMATHESIS";
/// The checks that every response must pass.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";
/// Requests of each kind for each operation.
const REQUESTS: &str = "10";
const SEED: &str = "17";
/// Operations that cannot be tested, because a stream does not end.
const EXCLUDED: &str =
    "\n[[operations]]\ninclude-name = 'GET /v1/events/stream'\nenabled = false\n";

/// Sends many valid and invalid requests to a server, as its `/openapi.json` describes them, and asserts that
/// no response is a server error or differs from the description.
///
/// `configuration` is the text of a `schemathesis.toml`, such as with ids that exist.
pub fn assert_interface_is_as_described(address: SocketAddr, configuration: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("schemathesis.toml");
    fs::write(&file, format!("{configuration}{EXCLUDED}")).unwrap();
    let mut command = Command::new(program());
    command.current_dir(directory.path()).arg("--config-file").arg(file).arg("run");
    command.arg(format!("http://{address}/openapi.json"));
    command.args(["--checks", CHECKS, "--max-examples", REQUESTS, "--seed", SEED]);
    command.args(["--request-timeout", "60", "--no-color", "--warnings", "off"]);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(status.success(), "{stdout}\n{stderr}");
}

fn program() -> PathBuf {
    let path = env::var_os(VARIABLE).filter(|path| !path.is_empty());
    path.map(PathBuf::from).or_else(installed).unwrap_or_else(|| {
        panic!(
            "Schemathesis was not found; `scripts/test` installs it, or run `pip install schemathesis` and set \
             {VARIABLE} to the path of the program"
        )
    })
}

/// Where `scripts/test` installed it, in the build directory of this process.
fn installed() -> Option<PathBuf> {
    let this_program = env::current_exe().ok()?;
    let programs = this_program.ancestors().map(|it| it.join("schemathesis/bin/schemathesis"));
    programs.into_iter().find(|program| program.is_file())
}
