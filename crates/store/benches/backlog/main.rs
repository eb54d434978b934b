//! Does a round cost the same however much waits? And what does adding cost beside plain inserts?
//!
//! `cargo bench -p grid-batch-store` measures 1,000, 100,000 and 1,000,000 open batches over 10,000
//! services on both databases; `-- --quick` a hundredth of that. It fails where a goal is missed.

mod goals;
mod measure;
mod plain;
mod target;

use std::{env, process::ExitCode};

use goals::Goals;
use target::Target;

fn main() -> ExitCode {
    let scale = if env::args().any(|argument| argument == "--quick") { 100 } else { 1 };
    let mut goals = Goals::default();
    for target in [Target::postgres(), Target::sqlite()] {
        println!("\n{target}\n");
        adding(&target, scale, &mut goals);
        rounds(&target, scale, &mut goals);
    }
    goals.verdict()
}

/// Adds groups of batches through the store, and plainly, in turns.
fn adding(target: &Target, scale: usize, goals: &mut Goals) {
    println!("adding 600-byte batches of one transaction, in turns with plain multi-row inserts");
    println!("{:>10} {:>14} {:>14} {:>8}", "group", "store, 1/s", "plain, 1/s", "ratio");
    for group in [100, 1_000] {
        let rates = measure::adding(target, group, 40_000 / scale);
        println!("{group:>10} {:>14.0} {:>14.0} {:>8.2}", rates.store, rates.plain, rates.ratio());
        goals.at_least(&format!("{target}: adding in groups of {group}"), rates.ratio(), 0.5);
    }
    println!();
}

/// Takes and records rounds of 100 with more and more batches waiting behind them.
fn rounds(target: &Target, scale: usize, goals: &mut Goals) {
    println!("rounds of 100 (median milliseconds; {} in one)", target.unit_read());
    println!(
        "{:>10} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10} {:>10} {:>12} {:>12}",
        "open",
        "take",
        "accept",
        "commit",
        "pending",
        "take reads",
        "acc. reads",
        "com. reads",
        "batches/s",
        "by four"
    );
    let mut takes = Vec::new();
    for open in [1_000, 100_000, 1_000_000] {
        let rounds = measure::rounds(target, open / scale.min(open / 1_000));
        println!(
            "{:>10} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>10} {:>10} {:>10} {:>12.0} {:>12.0}",
            rounds.open,
            rounds.take,
            rounds.accept,
            rounds.commit,
            rounds.pending,
            rounds.take_reads,
            rounds.accept_reads,
            rounds.commit_reads,
            rounds.cycles,
            rounds.cycles_of_four,
        );
        takes.push(rounds.take);
    }
    let growth = takes[takes.len() - 1] / takes[0];
    goals.at_most(
        &format!("{target}: taking a round with the most waiting, over the least"),
        growth,
        1.5,
    );
}
