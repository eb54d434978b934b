//! The packages in `clients`: they are built, encode as the published SDKs do, and work with a server.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use grid_batch_test_support::{
    batches::signed_batch,
    generated_clients::GeneratedClients,
    process::{ProcessOutput, TestProcess, run},
    webhook_receiver::{ReceivedMessage, WebhookReceiver},
};
use serde_json::{Value, json};

use crate::harness::{BatchHarness, BatchServer, unused_address};

/// A package that was built and installed, with a program that uses it.
struct Package {
    clients: GeneratedClients,
    interpreter: PathBuf,
    /// The extension of programs, and the language of the blocks of its README.
    language: [&'static str; 2],
}

impl Package {
    /// Built by npm, which runs the generator and the compiler.
    fn typescript() -> Self {
        let clients = sources("typescript");
        clients.run("npm", &["pack", "./clients/typescript"]);
        let target = "app/node_modules/grid-batch-client";
        fs::create_dir_all(clients.folder().join(target)).unwrap();
        let archive = find(clients.folder(), ".tgz");
        clients.run("tar", &["-xzf", &archive, "-C", target, "--strip-components=1"]);
        let language = ["mjs", "js"];
        Self { clients, interpreter: "node".into(), language }.with_programs("typescript")
    }

    /// Built as a wheel by pip, which runs the generator.
    fn python() -> Self {
        let clients = sources("python");
        let pip = clients.tool("python/bin/pip");
        let wheel = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "./clients/python"];
        clients.run(&pip, &wheel);
        let archive = find(clients.folder(), ".whl");
        clients.run(&pip, &["install", "--quiet", "--no-deps", "--target", "app", &archive]);
        let interpreter = clients.tool("python/bin/python");
        Self { clients, interpreter, language: ["py", "python"] }.with_programs("python")
    }

    /// Copies the program of this test, and the example of the README.
    fn with_programs(self, folder: &str) -> Self {
        let [extension, language] = self.language;
        let app = self.clients.folder().join("app");
        let check = format!("check.{extension}");
        fs::copy(self.clients.folder().join(&check), app.join(&check)).unwrap();
        let readme = fs::read_to_string(root().join("clients").join(folder).join("README.md"));
        let readme = readme.unwrap();
        let (_, block) = readme.split_once(&format!("```{language}\n")).unwrap();
        let (example, _) = block.split_once("```").unwrap();
        fs::write(app.join(format!("example.{extension}")), example).unwrap();
        self
    }

    /// A program with these arguments.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let file = self.clients.folder().join(format!("app/{program}.{}", self.language[0]));
        let mut command = Command::new(&self.interpreter);
        command.arg(file).args(arguments);
        command
    }

    fn check(&self, arguments: &[&str]) -> ProcessOutput {
        run(self.command("check", arguments))
    }

    /// What a program prints that succeeds.
    fn print(&self, arguments: &[&str]) -> String {
        let output = self.check(arguments);
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        output.stdout
    }
}

/// The folder of a package, with the description that it is generated from.
fn sources(package: &str) -> GeneratedClients {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client_packages");
    let description = fs::read_to_string(root().join("docs/openapi.json")).unwrap();
    let clients = GeneratedClients::new(&programs, &description);
    fs::create_dir_all(clients.folder().join("docs")).unwrap();
    fs::write(clients.folder().join("docs/openapi.json"), description).unwrap();
    copy(&root().join("clients").join(package), &clients.folder().join("clients").join(package));
    clients
}

/// Copies what the repository has of a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if !entry.file_type().unwrap().is_dir() {
            fs::copy(entry.path(), target).unwrap();
        } else if !["node_modules", "dist"].map(OsString::from).contains(&entry.file_name()) {
            copy(&entry.path(), &target);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The name of the only file with this end.
fn find(folder: &Path, end: &str) -> String {
    let names = fs::read_dir(folder).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.find(|name| name.ends_with(end)).unwrap()
}

/// The lists that the published SDK for Python has made, by their names.
fn lists_of_the_sdk() -> BTreeMap<String, String> {
    let folder = root().join("crates/protocol/tests/fixtures/python");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let lists = files.filter(|path| path.extension().is_some_and(|it| it == "bin"));
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    lists.map(|path| (name(&path), hex(fs::read(&path).unwrap()))).collect()
}

fn assert_encodes_as_the_sdk(package: &Package) {
    let made: BTreeMap<String, String> = serde_json::from_str(&package.print(&["encode"])).unwrap();
    assert_eq!(made, lists_of_the_sdk());
}

fn assert_example_runs(package: &Package) {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let mut command = package.command("example", &[]);
    command.env("GRID_BATCH_URL", format!("http://{}", server.address));
    let output = run(command);
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    let (state, followed) = output.stdout.split_once('\n').unwrap();
    assert_eq!(state, "committed");
    let followed: Vec<&str> = followed.split_whitespace().collect();
    let [batch, "committed", position] = followed[..] else { panic!("{followed:?}") };
    assert_eq!(server.get(&format!("/v1/batches/{batch}"))["label"], "invoice 17");
    assert_eq!(server.get(&format!("/v1/events?after={position}"))["data"], json!([]));
}

fn assert_follows_over_a_restart(package: &Package) {
    let harness = BatchHarness::sawtooth();
    let address = unused_address().to_string();
    let serve = || harness.serve_with(&[("--listen", &address)]);
    let server = serve();
    let url = format!("http://{address}");
    let mut follower = TestProcess::spawn(package.command("check", &["follow", &url]));
    follower.wait_for_stdout("committed first");
    server.stop();
    follower.wait_for_stdout("no server");
    let server = serve();
    let followed: Value = serde_json::from_str(&follower.wait_for_stdout("followed ")).unwrap();
    assert_eq!(followed["state"], "committed");
    let seen: Vec<&Value> =
        followed["seen"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    let page = server.get("/v1/events?limit=1000");
    let fed: Vec<&Value> = page["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(seen, fed[..seen.len()], "each event once, in order");
    assert_eq!(follower.wait().exit_code, Some(0));
}

/// A request as a receiver gets it.
fn received(secret: &Value, message: &ReceivedMessage) -> Value {
    let headers = json!({
        "webhook-id": message.id, "webhook-timestamp": message.timestamp, "webhook-signature": message.signature,
    });
    json!({ "secret": secret, "headers": headers, "body": message.body })
}

fn assert_verifies_webhooks(package: &Package) {
    let harness = BatchHarness::sawtooth();
    let receiver = WebhookReceiver::start(&[]);
    let server = harness.serve_with(&[("--requests-options", "webhooks=private:127.0.0.1")]);
    let body = json!({ "url": receiver.url(), "kinds": ["ended"], "reason": "a test" });
    let created = server.post_json("/v1/webhooks", &body).json();
    let message = message_of_a_batch(&server, &receiver, 0);
    let file = package.clients.folder().join("received.json");
    let verify = |received: &Value| {
        fs::write(&file, received.to_string()).unwrap();
        package.check(&["verify", file.to_str().unwrap()])
    };
    let genuine = received(&created["secret"], &message);
    assert_eq!(verify(&genuine).stdout, format!("{} committed\n", message.id));
    let mut forged = genuine.clone();
    forged["body"] = message.body.replace("committed", "invalid").into();
    let mut late = genuine.clone();
    late["headers"]["webhook-timestamp"] = "1600000000".into();
    for refused in [forged, late, received(&json!("whsec_AAAA"), &message)] {
        let output = verify(&refused);
        assert_eq!((output.exit_code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
        assert!(output.stderr.contains("WebhookVerificationError"), "{output:?}");
    }

    // While the secret changes, both are accepted.
    let rotate = format!("/v1/webhooks/{}/rotate", created["id"].as_str().unwrap());
    let rotated = server.post_json(&rotate, &json!({ "reason": "a test" })).json();
    let message = message_of_a_batch(&server, &receiver, 1);
    for secret in [&created["secret"], &rotated["secret"]] {
        assert_eq!(
            verify(&received(secret, &message)).stdout,
            format!("{} committed\n", message.id)
        );
    }
}

fn message_of_a_batch(
    server: &BatchServer,
    receiver: &WebhookReceiver,
    number: usize,
) -> ReceivedMessage {
    server.submit(&[signed_batch("global", number)]);
    receiver.next()
}

fn check(package: &Package) {
    assert_encodes_as_the_sdk(package);
    assert_example_runs(package);
    assert_follows_over_a_restart(package);
    assert_verifies_webhooks(package);
}

#[test]
fn package_for_typescript_does_what_its_readme_says() {
    check(&Package::typescript());
}

#[test]
fn package_for_python_does_what_its_readme_says() {
    check(&Package::python());
}
