//! A ledger with one node and a block each second: `sequence-ledger-sim [ADDRESS]`.

use std::{env, io, thread, time::Duration};

use sequence_ledger_sim::Simulator;

fn main() -> io::Result<()> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8545".to_owned());
    let simulator = Simulator::start_at(&address, "simulated", Duration::from_secs(1))?;
    println!("the node is at {}", simulator.urls().join(", "));
    loop {
        thread::park();
    }
}
