//! The Debian package, the unit of systemd, manifests of containers, and the list of components.

use std::{
    env, fs,
    os::unix::{fs::PermissionsExt, net::UnixDatagram},
    path::{Path, PathBuf},
    process::Command,
};

use grid_batch_test_support::{
    batches::signed_batches,
    process::{ProcessOutput, run},
};

use crate::{
    GRID_BATCH,
    harness::{BatchHarness, BatchServer},
};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs a program, which must succeed.
#[track_caller]
pub fn succeed(command: &mut Command) -> ProcessOutput {
    let program = command.get_program();
    let is_installed = Path::new(program).is_absolute()
        || env::split_paths(&env::var_os("PATH").unwrap()).any(|it| it.join(program).exists());
    let installs = "install it: unshare and setpriv are in util-linux, systemd-analyze in systemd, dpkg-deb in dpkg, \
                    openssl in a package of its own";
    assert!(is_installed, "{} was not found; {installs}", program.display());
    let mut own = Command::new(program);
    own.args(command.get_args());
    for (name, value) in command.get_envs() {
        own.env(name, value.unwrap_or_default());
    }
    let output = run(own);
    assert_eq!(output.exit_code, Some(0), "{command:?}: {output:?}");
    output
}

pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_grid-batch")
}

/// A program of the tools for manifests.
fn tool(name: &str) -> Command {
    let folder = env::var_os("GRID_BATCH_TEST_MANIFESTS").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| {
        panic!(
            "set GRID_BATCH_TEST_MANIFESTS to a Python environment with kubernetes-validate, check-jsonschema and \
             cyclonedx-python-lib[json-validation], as scripts/test does"
        )
    });
    Command::new(folder.join("bin").join(name))
}

/// The package, with a program that is built for tests.
pub fn built_package(directory: &Path) -> PathBuf {
    let output = directory.join("debian").display().to_string();
    let made = succeed(
        Command::new(root().join("scripts/package-deb"))
            .args(["--binary", program(), "--output", &output])
            .envs([("DPKG_DEB_COMPRESSOR_TYPE", "gzip"), ("DPKG_DEB_COMPRESSOR_LEVEL", "1")]),
    );
    PathBuf::from(made.stdout.trim())
}

/// A package like this one, with another version and changed content.
pub fn changed_package(package: &Path, output: &Path, version: &str, change: impl FnOnce(&Path)) {
    let content = output.with_extension("content");
    succeed(Command::new("dpkg-deb").arg("--raw-extract").args([package, &content]));
    let control = content.join("DEBIAN/control");
    let text = fs::read_to_string(&control).unwrap();
    let present = text.lines().find(|line| line.starts_with("Version: ")).unwrap();
    fs::write(control, text.replace(present, &format!("Version: {version}"))).unwrap();
    change(&content);
    let build = ["--root-owner-group", "-Zgzip", "-z1", "--build"];
    succeed(Command::new("dpkg-deb").args(build).args([&content, output]));
}

/// Changes the first configuration, as a later release may.
pub fn with_another_default(content: &Path) {
    let file = content.join("usr/share/grid-batch/grid-batch.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(file, format!("{text}# Another comment.\n")).unwrap();
}

/// The package, unpacked.
fn unpacked(directory: &Path) -> PathBuf {
    let package = built_package(directory);
    let described = succeed(Command::new("dpkg-deb").arg("--info").arg(&package)).stdout;
    for text in ["Package: grid-batch", "Depends: libc6", "ca-certificates", "postinst"] {
        assert!(described.contains(text), "{text}: {described}");
    }
    let installed = directory.join("installed");
    succeed(Command::new("dpkg-deb").arg("--extract").args([&package, &installed]));
    installed
}

/// The package of a program at some place, as a user with these variables builds it.
fn package_by(place: &Path, umask: &str, variables: &[(&str, &str)]) -> Vec<u8> {
    fs::create_dir_all(place).unwrap();
    let copied = place.join("grid-batch");
    fs::copy(program(), &copied).unwrap();
    let script = format!("umask {umask} && exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(root().join("scripts/package-deb"));
    command.arg("--binary").arg(copied).arg("--output").arg(place.join("debian"));
    command.envs([("DPKG_DEB_COMPRESSOR_TYPE", "gzip"), ("DPKG_DEB_COMPRESSOR_LEVEL", "1")]);
    let made = succeed(command.envs(variables.iter().copied()));
    fs::read(made.stdout.trim()).unwrap()
}

#[test]
fn package_does_not_depend_on_who_builds_it() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let one = package_by(&place.join("one"), "022", &[("LC_ALL", "C"), ("TZ", "UTC")]);
    let variables = [
        ("LC_ALL", "C.UTF-8"),
        ("TZ", "Asia/Tokyo"),
        ("HOME", "/nowhere"),
        ("CARGO_HOME", "/nowhere"),
        ("COLUMNS", "40"),
        ("GRID_BATCH_LISTEN", "127.0.0.1:1"),
    ];
    let other = package_by(&place.join("an/other"), "077", &variables);
    // `diffoscope` shows how two packages differ.
    assert!(one == other, "the packages of {} differ", place.display());
}

/// Links lead to files of the package, also those of alerts, which name a section.
#[test]
fn package_has_the_manual_without_dead_links() {
    let directory = tempfile::tempdir().unwrap();
    let doc = unpacked(directory.path()).join("usr/share/doc/grid-batch");
    let summary = fs::read_to_string(doc.join("docs/SUMMARY.md")).unwrap();
    let targets: Vec<&str> =
        summary.split("](").skip(1).map(|it| it.split(')').next().unwrap()).collect();
    assert!(targets.len() > 30, "{targets:?}");
    let mut pages = vec![doc.join("README.md"), doc.join("docs/SUMMARY.md")];
    pages.extend(targets.iter().map(|page| doc.join("docs").join(page)));
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1).map(|it| it.split([')', '#']).next().unwrap()) {
            let is_elsewhere = target.is_empty() || target.contains("://");
            let file = page.parent().unwrap().join(target);
            assert!(is_elsewhere || file.exists(), "{}: {target}", page.display());
        }
    }
    let alerts = fs::read_to_string(doc.join("examples/alerts.yml")).unwrap();
    let runbooks = alerts.lines().filter_map(|it| it.trim().strip_prefix("runbook_url: "));
    let runbooks: Vec<&str> = runbooks.collect();
    assert_eq!(runbooks.len(), alerts.matches("- alert: ").count());
    for runbook in runbooks {
        let path = runbook.strip_prefix("file:///usr/share/doc/grid-batch/").unwrap();
        let (page, section) = path.split_once('#').unwrap();
        let text = fs::read_to_string(doc.join(page)).unwrap().to_lowercase();
        assert!(text.contains(&format!("\n## {section}\n")), "{runbook}");
    }
}

/// Has a program see all files read-only but those of a folder, without privileges, as the unit does.
fn restricted(program: &Path, state: &Path) -> Command {
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro / && \
                  exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set -all \
                  --inh-caps -all \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
    command.arg(state).arg(program).env_clear();
    command
}

#[test]
fn package_installs_and_starts_under_restrictions() {
    let harness = BatchHarness::sawtooth();
    let installed = unpacked(harness.path());
    for (file, mode) in [
        ("usr/bin/grid-batch", 0o755),
        ("lib/systemd/system/grid-batch.service", 0o644),
        ("usr/share/grid-batch/grid-batch.toml", 0o644),
        ("usr/share/man/man1/grid-batch-serve.1.gz", 0o644),
        ("usr/share/bash-completion/completions/grid-batch", 0o644),
        ("usr/share/doc/grid-batch/examples/database.conf", 0o644),
        ("usr/share/doc/grid-batch/examples/contracts/NativePool.json", 0o644),
    ] {
        let found =
            fs::metadata(installed.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(found.permissions().mode() & 0o777, mode, "{file}");
    }
    // The program, its configuration and its state are where another user reaches them.
    let place =
        tempfile::Builder::new().prefix("grid-batch-installed-").tempdir_in("/tmp").unwrap();
    let open = |path: &Path| fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    open(place.path());
    let (copied, state) = (place.path().join("grid-batch"), place.path().join("state"));
    fs::copy(installed.join("usr/bin/grid-batch"), &copied).unwrap();
    let configuration = place.path().join("grid-batch.toml");
    fs::copy(installed.join("usr/share/grid-batch/grid-batch.toml"), &configuration).unwrap();
    open(&configuration);
    fs::create_dir(&state).unwrap();
    std::os::unix::fs::chown(&state, Some(65534), Some(65534)).unwrap();

    let mut command = restricted(&copied, &state);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--ledger-kind", "sawtooth"])
        .args(["--ledger-urls", &harness.ledger.url()])
        .arg("--config")
        .arg(&configuration)
        .args(["--database", &format!("sqlite://{}", state.join("grid-batch.db").display())]);
    let server = BatchServer::start(command);
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    let path = format!("/v1/batches/{}?wait=60", batches[0].batch_id);
    assert_eq!(server.get(&path)["state"], "committed");
    server.stop();
}

#[test]
fn unit_is_valid_and_restricts_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let unit = directory.path().join("grid-batch.service");
    let text = fs::read_to_string(root().join("deploy/systemd/grid-batch.service")).unwrap();
    assert!(text.contains("ExecStart=/usr/bin/grid-batch serve"));
    fs::write(&unit, text.replace("/usr/bin/grid-batch", program())).unwrap();
    succeed(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit));
    // In tenths: 0 is the least exposure, 100 the most.
    let security = ["security", "--offline=true", "--threshold=15", "--no-pager"];
    succeed(Command::new("systemd-analyze").args(security).arg(&unit));
}

#[test]
fn service_manager_hears_of_start_work_and_stop() {
    let harness = BatchHarness::sawtooth();
    let path = harness.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut command = harness.command(&[]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    let server = BatchServer::start(command);
    let received = || {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let ready = received();
    assert!(
        ready.starts_with("READY=1\n") && ready.contains(&server.address.to_string()),
        "{ready}"
    );
    assert_eq!([received(), received()], ["WATCHDOG=1\n", "WATCHDOG=1\n"]);
    server.stop();
    let last = std::iter::repeat_with(received).find(|text| text != "WATCHDOG=1\n").unwrap();
    assert!(last.starts_with("STOPPING=1\n"), "{last}");
}

#[test]
fn manifests_fit_their_schemas() {
    let (kubernetes, compose) = (
        root().join("deploy/kubernetes/grid-batch.yaml"),
        root().join("deploy/docker/compose.yaml"),
    );
    succeed(tool("kubernetes-validate").arg("--strict").arg(kubernetes));
    for (schema, file) in [
        ("vendor.compose-spec", compose),
        ("vendor.github-workflows", root().join(".github/workflows/ci.yml")),
        ("vendor.github-actions", root().join(".github/actions/part/action.yml")),
    ] {
        succeed(tool("check-jsonschema").args(["--builtin-schema", schema]).arg(file));
    }
}

/// The settings in the manifests are those of this release.
#[test]
fn settings_of_the_manifests_are_valid() {
    let manifest = fs::read_to_string(root().join("deploy/kubernetes/grid-batch.yaml")).unwrap();
    let (_, rest) = manifest.split_once("grid-batch.toml: |\n").unwrap();
    let (block, _) = rest.split_once("---").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("database-url");
    fs::write(&secret, "postgresql://grid_batch:secret@database/grid_batch").unwrap();
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    let lines = block.lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = text.replace("/run/secrets/grid-batch/database-url", secret.to_str().unwrap());
    let file = directory.path().join("grid-batch.toml");
    fs::write(&file, text).unwrap();
    let checked = run(GRID_BATCH.command(["config", "check", "--config", file.to_str().unwrap()]));
    assert_eq!(checked.exit_code, Some(0), "{checked:?}");

    let compose = fs::read_to_string(root().join("deploy/docker/compose.yaml")).unwrap();
    let variables = compose.lines().map(str::trim).filter(|line| line.starts_with("GRID_BATCH_"));
    let variables = variables.filter_map(|line| line.split_once(": "));
    let mut command = GRID_BATCH.command(["config", "check"]);
    for (name, value) in variables {
        command.env(
            name,
            if name == "GRID_BATCH_DATABASE_FILE" { secret.to_str().unwrap() } else { value },
        );
    }
    let checked = run(command);
    assert_eq!(checked.exit_code, Some(0), "{checked:?}");
}

#[test]
fn components_of_a_release_are_listed() {
    let listed = succeed(&mut Command::new(root().join("scripts/sbom"))).stdout;
    for package in ["pkg:cargo/diesel@", "pkg:cargo/tokio@", "pkg:cargo/grid-batch-store@"] {
        assert!(listed.contains(package), "{package} is missing");
    }
    for package in ["grid-batch-demo", "grid-batch-ledger-sim", "mockall"] {
        assert!(!listed.contains(package), "{package} is no part of a release");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("components.json");
    fs::write(&file, listed).unwrap();
    let script = "import sys; from cyclonedx.schema import SchemaVersion; \
                  from cyclonedx.validation.json import JsonStrictValidator; \
                  error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read()); \
                  sys.exit(str(error) if error else 0)";
    succeed(tool("python").args(["-c", script]).arg(&file));
}
