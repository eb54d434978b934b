//! Plain work of the same kind, which shows what the machine can do at best.

use std::{io, net::SocketAddr, rc::Rc, time::Instant};

use grid_batch_protocol::{Limits, verify_list};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    runtime::Builder,
    task::{LocalSet, spawn_local},
};

use crate::{
    database::Database,
    ledger::LedgerKind,
    load::read_response,
    requests::{Plan, Request, signed_requests},
    run_options::RunOptions,
};

/// How many batches are measured at most.
const BATCHES: usize = 10_000;
/// The number of connections of the plain client: as many submissions as the server has under way.
const CONNECTIONS: usize = 100;

/// Rates of plain work with the same batches, database and ledger.
#[derive(Debug, Clone, Copy)]
pub struct Ceilings {
    /// Batches per second: inserts by one connection, in groups of as many as the client has under way.
    pub inserts: f64,
    /// The same by a thread that verifies each batch before.
    pub verified_inserts: f64,
    /// Batches per second: POSTs to the ledger over a hundred connections, without reading their statuses.
    pub posts: f64,
    /// Status requests per second over the same connections, each about one batch.
    pub status_requests: f64,
}

impl Ceilings {
    /// The rate of the slower of verified inserts and POSTs.
    pub fn slower(self) -> f64 {
        self.verified_inserts.min(self.posts)
    }
}

/// Measures with batches that the server and the ledger have not seen. The servers must have stopped.
pub fn measure(
    options: &RunOptions,
    database: &mut Database,
    ledger: SocketAddr,
) -> io::Result<Ceilings> {
    let (first, batches) = (options.batches, options.batches.min(BATCHES));
    let requests = Rc::new(signed_requests(&Plan {
        first,
        batches,
        batches_per_request: 1,
        ..options.plan()
    }));
    let rate = |started: Instant| batches as f64 / started.elapsed().as_secs_f64();

    let started = Instant::now();
    let mut row = 0;
    for group in requests.chunks(options.connections * options.batches_per_request) {
        database.insert_plainly(row, group);
        row += i64::try_from(group.len()).map_err(io::Error::other)?;
    }
    let inserts = rate(started);
    let started = Instant::now();
    for request in requests.iter() {
        verify_list(&request.body, &Limits::default()).map_err(io::Error::other)?;
    }
    let verified_inserts = 1.0 / (1.0 / inserts + 1.0 / rate(started));

    let (kind, started) = (options.ledger, Instant::now());
    exchange(ledger, &requests, move |request| submission(kind, request))?;
    let posts = rate(started);

    let started = Instant::now();
    exchange(ledger, &requests, move |request| status_request(kind, request))?;
    Ok(Ceilings { inserts, verified_inserts, posts, status_requests: rate(started) })
}

/// Sends a request for each batch, and reads the responses.
fn exchange(
    ledger: SocketAddr,
    requests: &Rc<Vec<Request>>,
    serialize: impl Fn(&Request) -> Vec<u8> + Copy + 'static,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                let requests = requests.clone();
                spawn_local(async move {
                    let mut stream = TcpStream::connect(ledger).await?;
                    stream.set_nodelay(true)?;
                    for request in requests.iter().skip(number).step_by(CONNECTIONS) {
                        stream.write_all(&serialize(request)).await?;
                        read_response(&mut stream).await?;
                    }
                    io::Result::Ok(())
                })
            })
            .collect();
        for client in clients {
            client.await.map_err(io::Error::other)??;
        }
        Ok(())
    })
}

fn submission(kind: LedgerKind, request: &Request) -> Vec<u8> {
    let length = request.body.len();
    let path = path(kind, request, "batches");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\n\
         content-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), &request.body].concat()
}

fn status_request(kind: LedgerKind, request: &Request) -> Vec<u8> {
    let name = if kind == LedgerKind::Sawtooth { "id" } else { "ids" };
    let (path, id) = (path(kind, request, "batch_statuses"), &request.batch_ids[0]);
    format!("GET {path}?{name}={id} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

fn path(kind: LedgerKind, request: &Request, endpoint: &str) -> String {
    match kind {
        LedgerKind::Scabbard => {
            format!("/scabbard/{}/{endpoint}", request.service.replace("::", "/"))
        }
        LedgerKind::Sawtooth => format!("/{endpoint}"),
    }
}
