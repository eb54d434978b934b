//! What a list of several batches in one POST saves, against a simulated Sawtooth over HTTP.
//!
//! `cargo run -p grid-batch-ledger-sim --example lists_of_batches`
#![expect(clippy::unwrap_used, reason = "an example ends at the first error")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use grid_batch_ledger_sim::LedgerSim;
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchList, Message, SigningKey, TransactionBuilder,
};

const BATCHES: usize = 2_000;
const CONNECTIONS: usize = 10;

fn main() {
    println!("{BATCHES} batches over {CONNECTIONS} connections, client and ledger in one process");
    println!("{:>10} {:>10} {:>10} {:>14}", "in a POST", "POSTs/s", "batches/s", "CPU a batch, ms");
    for in_a_post in [1, 10, 50, 1, 10, 50] {
        measure(in_a_post);
    }
}

fn measure(in_a_post: usize) {
    let ledger = LedgerSim::sawtooth().without_back_pressure();
    let ledger = ledger.pending_for(Duration::ZERO).valid_for(Duration::ZERO).start().unwrap();
    let address = ledger.url().strip_prefix("http://").unwrap().to_owned();
    let batches: Vec<Batch> = (0..BATCHES).map(|number| batch(in_a_post, number)).collect();
    let bodies: Vec<Vec<u8>> = batches.chunks(in_a_post).map(list).collect();
    let (started, cpu) = (Instant::now(), cpu_seconds());
    thread::scope(|scope| {
        for part in bodies.chunks(bodies.len().div_ceil(CONNECTIONS)) {
            let address = &address;
            scope.spawn(move || post_all(address, part));
        }
    });
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!(
        "{in_a_post:>10} {:>10.0} {:>10.0} {:>14.2}",
        bodies.len() as f64 / seconds,
        BATCHES as f64 / seconds,
        cpu * 1_000.0 / BATCHES as f64
    );
}

fn list(batches: &[Batch]) -> Vec<u8> {
    BatchList { batches: batches.to_vec() }.encode_to_vec()
}

fn batch(run: usize, number: usize) -> Batch {
    let key = SigningKey::from_seed(1);
    let transaction = TransactionBuilder::new("example", "1.0")
        .inputs(["be"])
        .outputs(["be"])
        .nonce(format!("{run} {number}"))
        .payload(vec![7; 100])
        .sign(&key, &key.public_key());
    BatchBuilder::new().transaction(transaction).sign(&key)
}

/// Posts one body after the other on one connection.
fn post_all(address: &str, bodies: &[Vec<u8>]) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for body in bodies {
        let head = format!(
            "POST /batches HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/octet-stream\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        read_response(&mut reader);
    }
}

fn read_response(reader: &mut impl BufRead) {
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).unwrap();
    assert!(line.contains(" 202 "), "{line}");
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let header = line.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    reader.take(length).read_to_end(&mut Vec::new()).unwrap();
}

/// The time for which the processors worked for this process, in hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}
