//! Checks that the cost of a round does not grow with the backlog, and measures the cost of adding
//! compared with plain inserts, and of claims.
//!
//! `cargo bench -p grid-batch-store` measures 1,000, 100,000 and 1,000,000 open batches over 10,000 services on both
//! databases, and ten instances that claim 100,000 services. `-- --quick` measures much less, and `-- claims` only the
//! claims. It fails if a goal is missed. `-- cycle` shows the cost of a batch from intake to its end, by the size of
//! the groups.

mod claims;
mod cycle;
mod goals;
mod measure;
mod plain;
mod target;

use std::{env, process::ExitCode};

use goals::Goals;
use target::Target;

fn main() -> ExitCode {
    let has_argument = |name: &str| env::args().any(|argument| argument == name);
    let scale = if has_argument("--quick") { 100 } else { 1 };
    let mut goals = Goals::default();
    if has_argument("cycle") {
        for target in [Target::postgres, Target::sqlite] {
            cycles(&target());
        }
        return ExitCode::SUCCESS;
    }
    let backlogs =
        [Target::postgres, Target::sqlite].into_iter().filter(|_| !has_argument("claims"));
    for target in backlogs.map(|target| target()) {
        println!("\n{target}\n");
        adding(&target, scale, &mut goals);
        rounds(&target, scale, &mut goals);
    }
    claims(&Target::postgres(), scale, &mut goals);
    goals.exit_code()
}

/// Measures the cost of a batch in groups of several sizes.
fn cycles(target: &Target) {
    println!(
        "\n{target}: microseconds of processor time a batch: this thread + the server process"
    );
    for (group, batches) in [(1, 1_000), (10, 5_000), (100, 5_000)] {
        let costs = cycle::measure(target, group, batches);
        print!("{:>5}", costs.group);
        for (name, own, server) in &costs.steps {
            print!("  {name} {own:.0}+{server:.0}");
        }
        let (own, server) = costs.total();
        println!("  all {own:.0}+{server:.0}  log {:.0} B", costs.log_bytes);
    }
}

/// Ten instances claim all services concurrently, renew, and take over the services of one.
fn claims(target: &Target, scale: usize, goals: &mut Goals) {
    let services = 100_000 / scale.min(20);
    let done = claims::claims(target, services);
    println!(
        "\nclaims of 10 instances on {} services of {target} (median milliseconds)",
        done.services
    );
    println!(
        "{:>10.0} until all are claimed by all instances concurrently; {:.1} a step",
        done.all, done.step
    );
    println!("{:>10.2} a renewal; {:.2} while all take", done.renewal, done.renewal_beside);
    println!(
        "{:>10.1} a step of taking over {} services of an expired instance, in {} steps",
        done.takeover_step, done.taken_over, done.steps
    );
    println!("{:>10.2} a round of 100", done.round);
    goals.at_most("claims: transactions that failed", done.failed as f64, 0.0);
    goals.at_most("claims: milliseconds of a renewal", done.renewal, 1.0);
    goals.at_most("claims: milliseconds of a step of taking over", done.takeover_step, 100.0);
}

/// Adds groups of batches, alternately through the store and by plain inserts.
fn adding(target: &Target, scale: usize, goals: &mut Goals) {
    println!(
        "adding 600-byte batches of one transaction, alternating with plain multi-row inserts"
    );
    println!("{:>10} {:>14} {:>14} {:>8}", "group", "store, 1/s", "plain, 1/s", "ratio");
    for group in [100, 1_000] {
        let rates = measure::adding(target, group, 40_000 / scale);
        println!("{group:>10} {:>14.0} {:>14.0} {:>8.2}", rates.store, rates.plain, rates.ratio());
        goals.at_least(
            &format!("{target}: adding in groups of {group}, compared with plain inserts"),
            rates.ratio(),
            0.5,
        );
    }
    println!();
}

/// Takes and records rounds of 100 with a growing backlog.
fn rounds(target: &Target, scale: usize, goals: &mut Goals) {
    println!("rounds of 100 (median milliseconds; {} in one round)", target.unit_read());
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
        &format!("{target}: taking a round: largest backlog compared with the smallest"),
        growth,
        1.5,
    );
}
