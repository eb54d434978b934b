//! Withdrawals end to end: the program as a process, a genuine EVM node, and a proxy between them
//! that misbehaves when it is told to.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

#[path = "../service/client.rs"]
mod client;
#[path = "../service/program.rs"]
#[expect(dead_code, reason = "it is made for other tests, too")]
mod program;
#[path = "../service/until.rs"]
mod until;
mod world;

mod chaos;
mod configuration;
mod demonstration;
mod elsewhere;
mod failing;
mod gate;
mod instances;
mod intake;
mod killed;
mod nodes;
mod order;
