use std::{
    env, fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use grid_batch_core::{Clock, ServiceId};
use grid_batch_ledger_sim::{
    ExecutionResult, LedgerSim, LedgerSimBuilder, RecordError, StartError, read_record,
};

use crate::{
    batches::{batch, id, list, transaction_id},
    client::{Request, eventually},
    ledgers::{CIRCUIT, SERVICE, authorized, both, sawtooth, scabbard, scope, service_path},
};

/// Environment variables of the killed process: its directory and its kind of ledger.
const DIRECTORY: &str = "GRID_BATCH_LEDGER_SIM_DIRECTORY";
const KIND: &str = "GRID_BATCH_LEDGER_SIM_KIND";

#[test]
fn record_has_results_in_order_with_times() {
    for ledger in both(|b| b) {
        ledger.submit(&[batch(1)]);
        ledger.advance(1);
        ledger.refuse(|_| Some(String::new()));
        ledger.submit(&[batch(2)]);
        let [first, second] = &ledger.record()[..] else { panic!("there are two") };
        assert_eq!((first.position, second.position), (0, 1));
        assert_eq!((first.batch_id, second.batch_id), (id(&batch(1)), id(&batch(2))));
        assert_eq!(first.transaction_ids, [transaction_id(&batch(1))]);
        assert_eq!(
            (first.result, second.result),
            (ExecutionResult::Applied, ExecutionResult::Invalid)
        );
        assert_eq!(second.time, ledger.clock.now());
        assert_eq!(second.time.since(first.time).as_secs(), 1);
    }
}

#[test]
fn record_names_the_service() {
    let [sawtooth, scabbard] = both(|b| b).map(|ledger| {
        ledger.submit(&[batch(1)]);
        ledger.record()[0].service_id.to_string()
    });
    assert_eq!(sawtooth, "global");
    assert_eq!(scabbard, format!("{CIRCUIT}::{SERVICE}"));
}

#[test]
fn record_is_in_the_file_before_the_status_is_reported() {
    for (number, start) in starts().into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(number.to_string());
        let ledger = start(&path);
        ledger.submit(&[batch(1), batch(2)]);
        assert_eq!(ledger.status(&batch(1)), "COMMITTED");
        assert_eq!(read_record(&path).unwrap(), ledger.record());
    }
}

#[test]
fn ledger_continues_from_its_record() {
    let statuses = starts().map(|start| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        start(&path).submit(&[batch(1)]);
        let ledger = start(&path);
        let status = ledger.status(&batch(1));
        ledger.submit(&[batch(1), batch(2)]);
        assert_eq!(ledger.applied(), [id(&batch(1)), id(&batch(2))]);
        assert!(ledger.audit(&promised(&[1, 2], &ledger.record()[0].service_id)).is_clean());
        (status, ledger.status(&batch(1)))
    });
    let [sawtooth, scabbard] = statuses;
    assert_eq!(sawtooth, ("COMMITTED".to_owned(), "COMMITTED".to_owned()));
    assert_eq!(scabbard, ("UNKNOWN".to_owned(), "INVALID".to_owned()));
}

#[test]
fn sawtooth_returns_batches_of_its_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record");
    let get = || Request::get(format!("/batches/{}", batch(1).header_signature));
    let before = {
        let ledger = sawtooth(|b| b.record_to(&path));
        ledger.submit(&[batch(1)]);
        ledger.send(&get()).json()["data"].clone()
    };
    let ledger = sawtooth(|b| b.record_to(&path));
    assert_eq!(ledger.send(&get()).json()["data"], before);
}

#[test]
fn record_survives_kill_9() {
    for kind in ["sawtooth", "scabbard"] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = LedgerProcess::start(directory.path(), kind);
        let address = child.address(directory.path());
        for number in 0..20 {
            let (path, content_type) = match kind {
                "sawtooth" => ("/batches".to_owned(), "application/octet-stream"),
                _ => (service_path(SERVICE, "batches"), "anything"),
            };
            let post = Request::post(path).header("Content-Type", content_type);
            let response = authorized(post).body(list(&[batch(number)])).send(address).unwrap();
            assert_eq!(response.status(), 202);
        }
        child.kill();
        let record = read_record(directory.path().join("record")).unwrap();
        let service_id = record[0].service_id.clone();
        let numbers: Vec<_> = (0..20).collect();
        let audit = grid_batch_ledger_sim::audit(&record, &promised(&numbers, &service_id));
        assert!(audit.is_clean() && audit.applied == 20, "{audit}");
        let ledger = builder(kind).record_to(directory.path().join("record")).start().unwrap();
        assert_eq!(ledger.record(), record);
    }
}

/// The process that the test above kills. Without the environment variables it does nothing.
#[test]
fn killed_process() {
    let (Ok(directory), Ok(kind)) = (env::var(DIRECTORY), env::var(KIND)) else { return };
    let directory = Path::new(&directory);
    let ledger = builder(&kind).record_to(directory.join("record")).start().unwrap();
    fs::write(directory.join("address.new"), ledger.address().to_string()).unwrap();
    fs::rename(directory.join("address.new"), directory.join("address")).unwrap();
    loop {
        thread::park();
    }
}

#[test]
fn unreadable_record_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let error = LedgerSim::sawtooth().record_to(directory.path()).start().unwrap_err();
    let StartError::Record(RecordError::Io { path, .. }) = error else { panic!("{error}") };
    assert_eq!(path, directory.path());
}

#[test]
fn port_in_use_is_an_error_that_names_it() {
    let first = LedgerSim::sawtooth().start().unwrap();
    let error = LedgerSim::sawtooth().port(first.address().port()).start().unwrap_err();
    assert!(error.to_string().contains(&first.address().to_string()), "{error}");
}

#[test]
fn dropped_ledger_releases_port_and_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record");
    let first = LedgerSim::sawtooth().record_to(&path).start().unwrap();
    let port = first.address().port();
    drop(first);
    LedgerSim::sawtooth().record_to(&path).port(port).start().unwrap();
}

struct LedgerProcess(Child);

impl LedgerProcess {
    fn start(directory: &Path, kind: &str) -> Self {
        let child = Command::new(env::current_exe().unwrap())
            .args(["record::killed_process", "--exact"])
            .env(DIRECTORY, directory)
            .env(KIND, kind)
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn address(&self, directory: &Path) -> std::net::SocketAddr {
        let path = directory.join("address");
        eventually("the other process serves", || path.exists());
        fs::read_to_string(path).unwrap().parse().unwrap()
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for LedgerProcess {
    fn drop(&mut self) {
        // The process has ended already, unless the test has failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn builder(kind: &str) -> LedgerSimBuilder {
    match kind {
        "sawtooth" => LedgerSim::sawtooth(),
        _ => LedgerSim::scabbard([scope(SERVICE)]),
    }
}

type StartLedger = fn(&Path) -> crate::ledgers::Ledger;

/// Functions that start each kind of ledger with its record in a file.
fn starts() -> [StartLedger; 2] {
    [|path| sawtooth(|b| b.record_to(path)), |path| scabbard(|b| b.record_to(path))]
}

fn promised(numbers: &[u32], service_id: &ServiceId) -> Vec<(ServiceId, grid_batch_core::ItemId)> {
    numbers.iter().map(|number| (service_id.clone(), id(&batch(*number)))).collect()
}
