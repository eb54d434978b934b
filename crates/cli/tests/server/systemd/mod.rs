//! The Debian package and its unit on a machine whose first process is systemd.

mod machine;

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, signed_batch},
    http::{request, send},
    wait::wait_until,
};
use tempfile::TempDir;

use crate::{
    harness::{BatchHarness, submit_list, unused_address},
    packages::{built_package, changed_package, with_another_default},
};
use machine::Machine;

/// A machine with the package installed, and a ledger outside of it.
struct Installed {
    machine: Machine,
    harness: BatchHarness,
    /// Where the server listens.
    address: SocketAddr,
    _packages: TempDir,
}

impl Installed {
    /// Installs the package of this version, and configures it.
    fn new() -> Self {
        let packages = tempfile::tempdir().unwrap();
        let package = built_package(packages.path());
        fs::rename(package, packages.path().join("grid-batch.deb")).unwrap();
        let package = packages.path().join("grid-batch.deb");
        changed_package(&package, &packages.path().join("next.deb"), "999.0", with_another_default);
        let machine = Machine::boot(packages.path());
        machine.run("dpkg --install /packages/grid-batch.deb");
        let harness = BatchHarness::sawtooth();
        let address = unused_address();
        let installed = Self { machine, harness, address, _packages: packages };
        installed.configure();
        installed
    }

    /// What an administrator does after the installation.
    fn configure(&self) {
        let Self { machine, harness, address, .. } = self;
        machine.run(&format!(
            r#"sed -i -e 's|^# kind = .*|kind = "sawtooth"\nrequest_timeout = "1s"|' \
                -e 's|^# urls = .*|urls = ["{}"]|' -e 's|^# listen = .*|listen = "{address}"|' \
                /etc/grid-batch/grid-batch.toml
            grid-batch config check --config /etc/grid-batch/grid-batch.toml"#,
            harness.ledger.url()
        ));
    }

    fn start(&self) {
        self.machine.run("systemctl start grid-batch.service");
    }

    /// Replaces settings of the unit.
    fn change_unit(&self, settings: &str) {
        self.machine.run(&format!(
            "mkdir -p /etc/systemd/system/grid-batch.service.d
            printf '[Service]\n{settings}\n' >/etc/systemd/system/grid-batch.service.d/test.conf
            systemctl daemon-reload"
        ));
    }

    fn submit(&self, number: usize) -> SignedBatch {
        let batch = signed_batch("global", number);
        submit_list(self.address, std::slice::from_ref(&batch));
        batch
    }

    fn state_of(&self, batch: &SignedBatch) -> Option<String> {
        let path = format!("/v1/batches/{}", batch.batch_id);
        let response = send(self.address, &request("GET", &path, &[], b"")).ok()?;
        (response.status == 200).then(|| response.json()["state"].as_str().unwrap().to_owned())
    }

    /// Waits until the batches are committed; the ledger has applied each once, and no others.
    #[track_caller]
    fn assert_applied_once(&self, batches: &[SignedBatch]) {
        for batch in batches {
            wait_until("the batch is committed", || {
                self.state_of(batch).as_deref() == Some("committed")
            });
        }
        let audit = self.harness.ledger.audit(&batch_ids(batches));
        assert_eq!(audit.applied, batches.len(), "{audit:?}");
        assert_eq!(self.harness.ledger.record().len(), batches.len(), "{audit:?}");
    }

    /// Starts the server, which must end with this code, and is not restarted.
    #[track_caller]
    fn assert_ends_for_good(&self, code: &str) {
        let Self { machine, .. } = self;
        let started = machine.try_run("systemctl start grid-batch.service");
        assert_eq!(started.exit_code, Some(1), "{started:?}");
        let found = ["ActiveState", "Result", "ExecMainStatus", "NRestarts"]
            .map(|name| machine.property(name));
        assert_eq!(found, ["failed", "exit-code", code, "0"], "{}", machine.journal());
        machine.run("systemctl reset-failed grid-batch.service");
    }
}

#[test]
fn package_is_installed_run_and_purged() {
    let installed = Installed::new();
    let Installed { machine, .. } = &installed;
    assert_eq!(machine.property("ActiveState"), "inactive", "not started before it is configured");
    // The database is named by a file that only root can read.
    machine.run(
        "umask 0077
        echo sqlite:///var/lib/grid-batch/of-credential.db >/etc/grid-batch/database.secret
        mkdir -m 0755 /etc/systemd/system/grid-batch.service.d
        cp /usr/share/doc/grid-batch/examples/database.conf /etc/systemd/system/grid-batch.service.d
        systemctl daemon-reload",
    );
    machine.run("systemctl enable --now grid-batch.service");
    // The start ends when the server accepts requests.
    let batch = installed.submit(1);
    let url = format!("http://{}", installed.address);
    assert_eq!(machine.property("StatusText"), format!("Accepting requests at {url}"));
    machine.run("test -f /var/lib/grid-batch/of-credential.db");
    installed.assert_applied_once(std::slice::from_ref(&batch));
    machine.run("systemctl stop grid-batch.service");
    assert_eq!([machine.property("Result"), machine.property("ExecMainStatus")], ["success", "0"]);

    installed.start();
    machine.run("apt-get --yes purge grid-batch");
    assert_eq!(machine.run("pgrep grid-batch || true"), "");
    assert_eq!(machine.run("systemctl list-units --failed --plain --no-legend 'grid-batch*'"), "");
    let left = machine.run("find / -xdev -name '*grid-batch*' -not -path '/packages/*' | sort");
    let kept = [
        // What the package has not written: the drop-in, and the secret.
        "/etc/grid-batch",
        "/etc/systemd/system/grid-batch.service.d",
        "/var/lib/grid-batch",
    ];
    assert_eq!(left.lines().collect::<Vec<_>>(), kept);
    machine.run("test -f /var/lib/grid-batch/of-credential.db");
    // Installed again, it goes on with the database.
    machine.run("dpkg --install /packages/grid-batch.deb");
    installed.configure();
    installed.start();
    installed.assert_applied_once(&[batch]);
}

#[test]
fn server_is_restarted_when_that_may_help() {
    let installed = Installed::new();
    let Installed { machine, .. } = &installed;
    // Wrong arguments, and a wrong configuration.
    installed.change_unit("ExecStart=\nExecStart=/usr/bin/grid-batch serve --no-such-flag");
    installed.assert_ends_for_good("2");
    installed.change_unit("Environment=GRID_BATCH_LEDGER_KIND=none");
    installed.assert_ends_for_good("78");

    // The port of another program.
    installed.change_unit("RestartSec=100ms\nWatchdogSec=2s");
    let other = TcpListener::bind(installed.address).unwrap();
    machine.run("systemctl start --no-block grid-batch.service");
    wait_until("the server has been restarted", || machine.property("NRestarts") != "0");
    assert!(machine.journal().contains("status=69"), "{}", machine.journal());
    drop(other);
    let first = machine.wait_for_successor("0");
    let mut batches = vec![installed.submit(1)];

    // A server that hangs is killed by the watchdog; it leaves no image of its memory, which may have keys.
    machine.run(&format!("kill -STOP {first}"));
    let second = machine.wait_for_successor(&first);
    assert!(machine.journal().contains("Watchdog timeout"), "{}", machine.journal());
    assert!(!machine.journal().contains("code=dumped"), "{}", machine.journal());
    batches.push(installed.submit(2));

    machine.run(&format!("kill -KILL {second}"));
    machine.wait_for_successor(&second);
    batches.push(installed.submit(3));
    installed.assert_applied_once(&batches);
}

#[test]
fn package_is_upgraded_with_batches_under_way() {
    let installed = Installed::new();
    let Installed { machine, harness, .. } = &installed;
    installed.start();
    let before = machine.property("MainPID");
    let mut batches = vec![installed.submit(1)];
    installed.assert_applied_once(&batches);
    harness.ledger.freeze();
    batches.extend((2..10).map(|number| installed.submit(number)));
    wait_until("a batch is with the ledger", || harness.ledger.most_waiting() > 0);
    let is_upgraded = AtomicBool::new(false);
    let meanwhile = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let numbers = (10..).take_while(|_| !is_upgraded.load(Ordering::Relaxed));
            numbers.map(|number| installed.submit(number)).collect::<Vec<_>>()
        });
        // The ledger does not answer until the new program runs.
        machine.run("apt-get --yes install /packages/next.deb");
        is_upgraded.store(true, Ordering::Relaxed);
        client.join().unwrap()
    });
    machine.wait_for_successor(&before);
    assert_eq!(machine.run("dpkg-query --show --showformat '${Version}' grid-batch"), "999.0");
    let journal = machine.journal();
    assert!(!journal.contains("timed out") && !journal.contains("SIGKILL"), "{journal}");
    harness.ledger.thaw();
    batches.extend(meanwhile);
    batches.push(installed.submit(1_000_000));
    installed.assert_applied_once(&batches);
    machine.run("systemctl is-active grid-batch.service");
}
