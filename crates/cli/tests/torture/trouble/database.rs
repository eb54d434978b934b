//! A database that restarts, refuses, is full, and is kept busy by others.

use std::time::Duration;

use diesel::{PgConnection, connection::SimpleConnection};

use crate::{
    bench::Bench,
    dice::{Deck, Dice},
    server::Stop,
};

#[derive(Debug, Clone, Copy)]
enum Deed {
    Restart(Stop),
    Terminate,
    Refuse,
    Exhaust,
    Pin,
    Read,
}

pub fn trouble(bench: &Bench, mut dice: Dice) {
    let mut deck = Deck::new(&[
        Deed::Restart(Stop::Immediate),
        Deed::Restart(Stop::Fast),
        Deed::Terminate,
        Deed::Refuse,
        Deed::Exhaust,
        Deed::Pin,
        Deed::Read,
        Deed::Terminate,
    ]);
    while bench.trouble.sleep(dice.millis(800..3_000)) {
        let moment = dice.millis(100..2_000);
        match deck.draw(&mut dice) {
            Deed::Restart(how) => {
                bench.diary.count("database restarted");
                bench.diary.outage(|| restart(bench, how, moment / 2));
            }
            Deed::Terminate => {
                bench.diary.count("database connections terminated");
                bench.server.terminate();
            }
            Deed::Refuse => {
                bench.diary.count("database refuses for a while");
                bench.diary.outage(|| refuse(bench, moment));
            }
            Deed::Exhaust => {
                bench.diary.count("database connections exhausted for a while");
                bench.diary.outage(|| exhaust(bench, moment));
            }
            Deed::Pin => {
                bench.diary.count("old rows pinned for a while");
                pin(bench, moment * 2);
            }
            Deed::Read => {
                bench.diary.count("heavy readers for a while");
                read(bench, moment);
            }
        }
    }
}

fn restart(bench: &Bench, how: Stop, moment: Duration) {
    bench.server.stop(how);
    bench.trouble.sleep(moment);
    bench.server.go_on();
}

fn refuse(bench: &Bench, moment: Duration) {
    bench.server.refuse();
    bench.trouble.sleep(moment);
    bench.server.accept();
}

/// Takes every connection that the service may have.
fn exhaust(bench: &Bench, moment: Duration) {
    bench.server.terminate();
    let mut taken = Vec::new();
    while let Ok(connection) = bench.server.connect() {
        taken.push(connection);
    }
    bench.trouble.sleep(moment);
}

/// A transaction that somebody forgot: what it sees cannot be cleaned up.
fn pin(bench: &Bench, moment: Duration) {
    let mut forgotten = bench.server.connect_as_owner().unwrap();
    forgotten
        .batch_execute("begin isolation level repeatable read; select count(*) from batches")
        .unwrap();
    bench.trouble.sleep(moment);
}

/// Reports that somebody runs again and again.
fn read(bench: &Bench, moment: Duration) {
    let mut readers: Vec<PgConnection> =
        (0..4).map(|_| bench.server.connect_as_owner().unwrap()).collect();
    let report = format!(
        "set statement_timeout = {}; do $$ begin loop
             perform count(*), sum(length(p.serialized_batch))
             from batches b join batch_payloads p on p.batch_seq = b.seq
             group by b.dlt_status order by random();
         end loop; end $$",
        moment.as_millis().max(1)
    );
    std::thread::scope(|scope| {
        for reader in &mut readers {
            // It ends by its time limit, which is an error.
            scope.spawn(|| reader.batch_execute(&report).is_err());
        }
    });
}
