//! Several instances of the program over one database: who works on what, and what becomes of it
//! when one of them ends, pauses, or comes back.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

#[path = "../service/batches.rs"]
#[expect(dead_code, reason = "it is made for other tests, too")]
mod batches;
#[path = "../service/bench.rs"]
#[expect(dead_code, reason = "it is made for other tests, too")]
mod bench;
#[path = "../service/client.rs"]
mod client;
mod group;
#[path = "../torture/instance.rs"]
#[expect(dead_code, reason = "it is made for other tests, too")]
mod instance;
#[path = "../service/program.rs"]
#[expect(dead_code, reason = "it is made for other tests, too")]
mod program;
#[path = "../torture/server.rs"]
#[expect(dead_code, reason = "it is made for other tests, too")]
mod server;
#[path = "../service/until.rs"]
mod until;

mod handing_over;
mod names;
mod outages;
mod paused;
mod sharing;
mod sqlite;
