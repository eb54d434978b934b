//! Clients that hand batches in, in order for each service, to whichever instance answers, until they
//! are taken.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use grid_batch_core::{Clock, SystemClock, Timestamp};

use crate::{
    batches::{Made, batch, list},
    bench::Bench,
    dice::Dice,
};

/// So many clients there are at most.
pub const CLIENTS: usize = 6;

/// A batch that was promised to be cared for, and since when.
pub struct Promise {
    pub made: Made,
    pub since: Timestamp,
}

/// Hands batches of every `CLIENTS`th service in, from the one of this number on; now and then many
/// at once.
pub fn hand_in(bench: &Bench, client: usize, mut dice: Dice) -> Vec<Promise> {
    let services: Vec<_> = bench.services.iter().skip(client).step_by(CLIENTS).collect();
    let mut client = Client { bench, turn: client };
    let mut numbers = vec![0; services.len()];
    let mut promises = Vec::new();
    while !services.is_empty() && !bench.trouble.is_over() {
        let burst = if dice.one_in(40) { dice.number(5..25) } else { 1 };
        if burst > 1 {
            bench.diary.count("bursts of batches");
        }
        let turn = dice.number(0..services.len());
        let first = numbers[turn];
        numbers[turn] += burst;
        let made: Vec<_> =
            (first..numbers[turn]).map(|number| batch(services[turn], number)).collect();
        client.until_taken(&made);
        let since = SystemClock.now();
        promises.extend(made.into_iter().map(|made| Promise { made, since }));
        bench.trouble.sleep(dice.millis(20..150));
    }
    promises
}

struct Client<'a> {
    bench: &'a Bench,
    turn: usize,
}

impl Client<'_> {
    /// A paused instance takes a request and never answers.
    const PATIENCE: Duration = Duration::from_secs(3);

    fn until_taken(&mut self, batches: &[Made]) {
        let path = format!("/batches?service_id={}", batches[0].service_id);
        let body = list(batches);
        loop {
            let answer = self.next_address().map(|address| post(address, &path, &body));
            match answer {
                Some(Ok((202, _))) => return,
                None | Some(Err(_) | Ok((429 | 503, _))) => {}
                Some(Ok((status, text))) => panic!("refused with {status}: {text}"),
            }
            self.bench.diary.count("requests repeated");
            self.turn += 1;
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The instance that was there last, or the next one.
    fn next_address(&mut self) -> Option<SocketAddr> {
        let addresses = self.bench.addresses.lock().unwrap();
        let count = addresses.len();
        let turn = (self.turn..self.turn + count).find(|turn| addresses[turn % count].is_some())?;
        self.turn = turn;
        addresses[turn % count]
    }
}

fn post(address: SocketAddr, path: &str, body: &[u8]) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, Client::PATIENCE)?;
    stream.set_read_timeout(Some(Client::PATIENCE))?;
    stream.set_write_timeout(Some(Client::PATIENCE))?;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: grid.test\r\nconnection: close\r\n\
         content-type: application/octet-stream\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or(io::ErrorKind::InvalidData)?, answer))
}
