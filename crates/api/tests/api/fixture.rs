use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use grid_batch_api::{ApiBuilder, ApiOptions, RunningApi};
use grid_batch_core::{HeaderId, ServiceId, TakenBatch};
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchList, Message, SigningKey, TransactionBuilder,
};
use grid_batch_store::{ClaimOptions, ClaimStore, DatabaseUrl, Store, StoreOptions};
use tempfile::TempDir;

use crate::client::{Answer, Client, request};

/// An interface that serves, and the store that is behind it.
pub struct Served {
    pub api: RunningApi,
    pub store: Store,
    pub address: SocketAddr,
    directory: TempDir,
}

impl Served {
    pub fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub fn with_options(options: ApiOptions) -> Self {
        Self::with(|builder| builder.with_options(options))
    }

    pub fn with(change: impl FnOnce(ApiBuilder) -> ApiBuilder) -> Self {
        Self::with_patience(Duration::from_secs(20), change)
    }

    /// With a store that waits so long for others.
    pub fn with_patience(
        patience: Duration,
        change: impl FnOnce(ApiBuilder) -> ApiBuilder,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = StoreOptions { lock_timeout: patience, ..StoreOptions::default() };
        let store = Store::open(&url(&directory), options).unwrap();
        let api = change(ApiBuilder::new(store.clone())).build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let api = api.serve(listener).unwrap();
        Self { api, store, address, directory }
    }

    pub fn url(&self) -> DatabaseUrl {
        url(&self.directory)
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.client().ask("POST", path, &["content-type: application/octet-stream"], body)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.client().ask("GET", path, &[], b"")
    }

    pub fn get_status(&self, id: &HeaderId) -> Answer {
        self.get(&format!("/batch_statuses?id={id}"))
    }

    /// Takes the next batch of a service, as an instance that claims it.
    pub fn take_batch_of(&self, service: ServiceId) -> TakenBatch {
        let services = [service];
        let claims = ClaimStore::register(self.store.clone(), ClaimOptions::default()).unwrap();
        claims.take_services(&services).unwrap();
        claims.take_round(&services).unwrap().remove(0)
    }

    pub fn is_stored(&self, id: &HeaderId) -> bool {
        !self.store.find(id).unwrap().is_empty()
    }

    /// Another connection to the database, as another process would have.
    pub fn other(&self) -> SqliteConnection {
        SqliteConnection::establish(file(&self.directory).to_str().unwrap()).unwrap()
    }

    /// Keeps the database locked until what is returned is dropped.
    pub fn lock(&self) -> SqliteConnection {
        let mut other = self.other();
        other.batch_execute("pragma busy_timeout = 20000; begin immediate").unwrap();
        other
    }
}

fn file(directory: &TempDir) -> PathBuf {
    directory.path().join("batches.db")
}

fn url(directory: &TempDir) -> DatabaseUrl {
    format!("sqlite://{}", file(directory).display()).parse().unwrap()
}

/// An interface whose writer has stored one batch, for the service `first`, and stands still until
/// `release` is dropped.
pub struct Held {
    pub served: Served,
    /// Waits for the answer about the first batch.
    pub first: Client,
    pub release: mpsc::Sender<()>,
    /// The services of each commit after the first.
    pub commits: mpsc::Receiver<Vec<ServiceId>>,
}

impl Held {
    pub fn new(options: ApiOptions) -> Self {
        let (release, released) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let released = Mutex::new(released);
        let served = Served::with(|builder| {
            builder.with_options(options).with_stored(move |services| {
                // Whoever made this may not listen any more.
                let _ = tell.send(services.to_vec());
                let _ = released.lock().unwrap().recv();
            })
        });
        let mut first = served.client();
        first.say(request("POST", "/batches?service_id=first", &[], &body([batch(1_000)])));
        assert_eq!(told.recv().unwrap(), [service("first")]);
        Self { served, first, release, commits: told }
    }

    /// Clients that post one batch each, until all places in the queue are taken. Some may have come
    /// when there was none.
    pub fn fill(&self) -> Vec<Client> {
        let mut clients = Vec::new();
        for number in 0.. {
            let mut client = self.served.client();
            client.say(request("POST", "/batches", &[], &body([batch(number)])));
            clients.push(client);
            // What is rubbish needs a place too, and does not keep it.
            if self.served.post("/batches", b"rubbish").status == 429 {
                break;
            }
        }
        clients
    }
}

/// A batch of one transaction, the same for the same number.
pub fn batch(number: u64) -> Batch {
    signed(number, false)
}

/// A batch of the same id and of other bytes: what `trace` says is not signed.
pub fn same_id_other_bytes(number: u64) -> Batch {
    signed(number, true)
}

fn signed(number: u64, trace: bool) -> Batch {
    let key = SigningKey::from_seed(7);
    let transaction = TransactionBuilder::new("intkey", "1.0")
        .nonce(number.to_string())
        .payload(b"set a to 1")
        .sign(&key, &key.public_key());
    BatchBuilder::new().transaction(transaction).trace(trace).sign(&key)
}

pub fn body(batches: impl IntoIterator<Item = Batch>) -> Vec<u8> {
    BatchList { batches: batches.into_iter().collect() }.encode_to_vec()
}

pub fn id(batch: &Batch) -> HeaderId {
    batch.header_signature.parse().unwrap()
}

pub fn service(text: &str) -> ServiceId {
    text.parse().unwrap()
}

/// Waits for something that others bring about.
pub fn wait_until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never comes true");
        thread::sleep(Duration::from_millis(2));
    }
}
