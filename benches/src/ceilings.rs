//! Plain work of the same kind, which shows what the machine can do at best.

use std::{
    io,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};

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
    proc_stats::cpu_time_of_this_thread,
    requests::{Plan, Request, signed_requests},
    run_options::RunOptions,
};

/// How many batches are measured at most.
const BATCHES: usize = 10_000;
/// The number of connections of the plain client: as many submissions as the server has under way.
const CONNECTIONS: usize = 100;

/// Plain work with the same batches, database and ledger.
#[derive(Debug, Clone, Copy)]
pub struct Ceilings {
    /// Inserts by one connection, in groups of as many as the client has under way.
    pub inserts: PlainWork,
    /// The same by a thread that verifies each batch before.
    pub verified_inserts: PlainWork,
    /// POSTs to the ledger over a hundred connections, without reading their statuses.
    pub posts: PlainWork,
    /// Status requests over the same connections, each about one batch.
    pub status_requests: PlainWork,
}

impl Ceilings {
    /// The rate of the slower of verified inserts and POSTs.
    pub fn slower(self) -> f64 {
        self.verified_inserts.rate.min(self.posts.rate)
    }
}

/// What a plain way to do something with each batch costs.
#[derive(Debug, Clone, Copy)]
pub struct PlainWork {
    /// Batches a second.
    pub rate: f64,
    /// The CPU time of one, without that of a database server or the ledger.
    pub cpu: Duration,
}

impl PlainWork {
    /// Does the work with so many batches on this thread.
    fn measure(batches: usize, work: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        let (started, cpu) = (Instant::now(), cpu_time_of_this_thread());
        work()?;
        let rate = batches as f64 / started.elapsed().as_secs_f64();
        let cpu = cpu_time_of_this_thread().saturating_sub(cpu) / u32::try_from(batches).unwrap();
        Ok(Self { rate, cpu })
    }

    /// Both for each batch.
    fn and(self, other: Self) -> Self {
        let rate = 1.0 / (1.0 / self.rate + 1.0 / other.rate);
        Self { rate, cpu: self.cpu + other.cpu }
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
    let inserts = PlainWork::measure(batches, || {
        let mut row = 0;
        for group in requests.chunks(options.connections * options.batches_per_request) {
            database.insert_plainly(row, group);
            row += i64::try_from(group.len()).map_err(io::Error::other)?;
        }
        Ok(())
    })?;
    let verified = PlainWork::measure(batches, || {
        let verify = |request: &Request| verify_list(&request.body, &Limits::default()).map(drop);
        requests.iter().try_for_each(verify).map_err(io::Error::other)
    })?;
    let kind = options.ledger;
    let posts = PlainWork::measure(batches, || {
        exchange(ledger, &requests, move |request| submission(kind, request))
    })?;
    let status_requests = PlainWork::measure(batches, || {
        exchange(ledger, &requests, move |request| status_request(kind, request))
    })?;
    Ok(Ceilings { inserts, verified_inserts: inserts.and(verified), posts, status_requests })
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
