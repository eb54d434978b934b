use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use grid_batch_api::{ApiBuilder, ApiOptions, HostName, RunningApi};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchList, Message, SigningKey, TransactFormat, TransactionBuilder,
};
use grid_batch_store::{ClaimOptions, ClaimStore, DatabaseUrl, Store, StoreOptions};
use tempfile::TempDir;

use crate::client::{Client, Response, encode_request};

/// A running interface over a SQLite database.
pub struct TestServer {
    pub api: RunningApi,
    pub store: Arc<Store>,
    pub address: SocketAddr,
    directory: TempDir,
}

impl TestServer {
    pub fn new() -> Self {
        Self::with(|builder, _| builder)
    }

    pub fn with_options(options: ApiOptions) -> Self {
        Self::with(|builder, _| builder.with_options(options))
    }

    pub fn with(configure: impl FnOnce(ApiBuilder, &Arc<Store>) -> ApiBuilder) -> Self {
        Self::with_lock_timeout(Duration::from_secs(20), configure)
    }

    /// A server whose store waits this long for a locked database.
    pub fn with_lock_timeout(
        timeout: Duration,
        configure: impl FnOnce(ApiBuilder, &Arc<Store>) -> ApiBuilder,
    ) -> Self {
        let options = StoreOptions { lock_timeout: timeout, ..StoreOptions::default() };
        Self::with_store_options(options, configure)
    }

    /// A server whose store has these options.
    pub fn with_store_options(
        options: StoreOptions,
        configure: impl FnOnce(ApiBuilder, &Arc<Store>) -> ApiBuilder,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&url(&directory), options).unwrap());
        let builder = ApiBuilder::new(store.clone(), store.clone())
            .with_format(Arc::new(TransactFormat::default()))
            .with_reads()
            .with_allowed_hosts(test_hosts());
        let (api, address) = serve(configure(builder, &store));
        Self { api, store, address, directory }
    }

    pub fn url(&self) -> DatabaseUrl {
        url(&self.directory)
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Response {
        self.client().request("POST", path, &["content-type: application/octet-stream"], body)
    }

    pub fn get(&self, path: &str) -> Response {
        self.client().request("GET", path, &[], b"")
    }

    pub fn get_status(&self, id: &ItemId) -> Response {
        self.get(&format!("/batch_statuses?id={id}"))
    }

    /// Takes the next batch of a service, as an instance that claims it.
    pub fn take_batch_of(&self, service: ServiceId) -> TakenBatch {
        let services = [service];
        let claims =
            ClaimStore::register(Store::clone(&self.store), ClaimOptions::default()).unwrap();
        claims.take_services(&services).unwrap();
        claims.take_next(&services).unwrap().remove(0)
    }

    pub fn is_stored(&self, id: &ItemId) -> bool {
        !self.store.find(id).unwrap().is_empty()
    }

    /// A connection to the database outside the store.
    pub fn connect_to_database(&self) -> SqliteConnection {
        SqliteConnection::establish(file(&self.directory).to_str().unwrap()).unwrap()
    }

    /// Locks the database until the connection is dropped.
    pub fn lock_database(&self) -> SqliteConnection {
        let mut connection = self.connect_to_database();
        connection.batch_execute("pragma busy_timeout = 20000; begin immediate").unwrap();
        connection
    }
}

/// The hosts that the requests of tests name.
pub fn test_hosts() -> Vec<HostName> {
    ["grid.test", "h"].map(|host| host.parse().unwrap()).to_vec()
}

/// Serves at a free port.
pub fn serve(builder: ApiBuilder) -> (RunningApi, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let api = builder.build().unwrap().serve(listener).unwrap();
    let address = api.local_addr();
    (api, address)
}

fn file(directory: &TempDir) -> PathBuf {
    directory.path().join("batches.db")
}

fn url(directory: &TempDir) -> DatabaseUrl {
    format!("sqlite://{}", file(directory).display()).parse().unwrap()
}

/// A server whose writer has stored one batch, for the service `first`, and is blocked until `release`
/// is dropped.
pub struct BlockedWriter {
    pub server: TestServer,
    /// Waits for the response to the first batch.
    pub first: Client,
    pub release: mpsc::Sender<()>,
    /// The services of each commit after the first.
    pub commits: mpsc::Receiver<Vec<ServiceId>>,
}

impl BlockedWriter {
    pub fn new(options: ApiOptions) -> Self {
        let (release, released) = mpsc::channel::<()>();
        let (sender, commits) = mpsc::channel();
        let released = Mutex::new(released);
        let server = TestServer::with(|builder, _| {
            builder.with_options(options).with_stored_callback(move |services| {
                // The test may have dropped the receiver.
                let _ = sender.send(services.to_vec());
                let _ = released.lock().unwrap().recv();
            })
        });
        let mut first = server.client();
        let list = body([batch(1_000)]);
        first.send(encode_request("POST", "/batches?service_id=first", &[], &list));
        assert_eq!(commits.recv().unwrap(), [service("first")]);
        Self { server, first, release, commits }
    }

    /// Clients that post one batch each, until the write queue is full. Some of them may have been
    /// refused because of that.
    pub fn fill_queue(&self) -> Vec<Client> {
        let mut clients = Vec::new();
        for number in 0.. {
            let mut client = self.server.client();
            client.send(encode_request("POST", "/batches", &[], &body([batch(number)])));
            clients.push(client);
            // An invalid list needs a slot of the queue too, and returns it at once.
            if self.server.post("/batches", b"invalid").status == 429 {
                break;
            }
        }
        clients
    }
}

/// A batch of one transaction. The same number gives the same batch.
pub fn batch(number: u64) -> Batch {
    signed_batch(number, false)
}

/// A batch with the id of `batch(number)` and other bytes: the signature does not cover `trace`.
pub fn same_id_other_bytes(number: u64) -> Batch {
    signed_batch(number, true)
}

fn signed_batch(number: u64, trace: bool) -> Batch {
    let key = SigningKey::from_seed(7);
    let transaction = TransactionBuilder::new("intkey", "1.0")
        .nonce(number.to_string())
        .payload(b"set a to 1")
        .sign(&key, &key.public_key());
    BatchBuilder::new().transaction(transaction).trace(trace).sign(&key)
}

/// A batch of a signer that writes addresses of its own.
pub fn batch_with_addresses(signer: u64, number: u64, addresses: usize) -> Batch {
    let key = SigningKey::from_seed(signer);
    let addresses = (0..addresses).map(|it| format!("7e57{signer:04x}{number:04x}{it:058x}"));
    let transaction = TransactionBuilder::new("intkey", "1.0")
        .outputs(addresses.collect::<Vec<_>>())
        .payload(b"set all")
        .sign(&key, &key.public_key());
    BatchBuilder::new().transaction(transaction).sign(&key)
}

pub fn body(batches: impl IntoIterator<Item = Batch>) -> Vec<u8> {
    BatchList { batches: batches.into_iter().collect() }.encode_to_vec()
}

pub fn id(batch: &Batch) -> ItemId {
    batch.header_signature.parse().unwrap()
}

pub fn service(text: &str) -> ServiceId {
    text.parse().unwrap()
}

/// Waits until a condition holds that other threads bring about.
pub fn wait_until(condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(20), "the condition does not become true");
        thread::sleep(Duration::from_millis(2));
    }
}
