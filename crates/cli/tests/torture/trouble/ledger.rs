//! A ledger that does everything wrong that ledgers do.

use std::time::Duration;

use grid_batch_ledger_sim::{Fault, When};

use crate::{
    bench::Bench,
    dice::{Deck, Dice},
    settings::LATE,
};

#[derive(Debug, Clone, Copy)]
enum Deed {
    Restart,
    Freeze,
    Busy,
    Forget,
    Heal,
}

/// What goes wrong all the time, and how likely.
const FAULTS: &[(Fault, f64)] = &[
    (Fault::Busy, 0.05),
    (Fault::TimedOut, 0.01),
    (Fault::ResetBefore, 0.01),
    (Fault::ResetAfter, 0.01),
    (Fault::LateAnswer(LATE), 0.01),
    (Fault::DroppedValid, 0.005),
    (Fault::Unauthorized, 0.005),
    (Fault::StatusesFail, 0.03),
    (Fault::LateStatuses(LATE), 0.01),
    (Fault::StatusesReset, 0.02),
    (Fault::StatusesBroken, 0.01),
    (Fault::StatusesTruncated, 0.01),
    (Fault::StatusesNotJson, 0.01),
    (Fault::StatusesWrongTyped, 0.01),
    (Fault::StatusesOfOthers, 0.01),
    (Fault::EventsBroken, 0.01),
    (Fault::LateEvents(Duration::from_millis(50)), 0.03),
];

pub fn trouble(bench: &Bench, mut dice: Dice) {
    let deeds = [Deed::Forget, Deed::Busy, Deed::Freeze, Deed::Restart, Deed::Forget, Deed::Heal];
    let mut deck = Deck::new(&deeds);
    begin(bench);
    while bench.trouble.sleep(dice.millis(500..3_000)) {
        let moment = dice.millis(200..1_500);
        match deck.draw(&mut dice) {
            Deed::Restart => {
                bench.diary.count("ledger restarted");
                bench.diary.outage(|| bench.ledger.restart());
            }
            Deed::Freeze => freeze_for(bench, moment),
            Deed::Busy => {
                bench.diary.count("ledger busy for a while");
                bench.diary.outage(|| always(bench, Fault::Busy, moment));
            }
            Deed::Forget => {
                bench.diary.count("ledger answers nobody for a while, and forgets");
                bench.diary.outage(|| {
                    always(bench, Fault::ResetAfter, moment);
                    bench.ledger.restart();
                });
            }
            Deed::Heal => {
                bench.diary.count("ledger without faults for a while");
                bench.ledger.heal();
                bench.trouble.sleep(moment);
                begin(bench);
            }
        }
    }
    bench.ledger.heal();
}

fn begin(bench: &Bench) {
    FAULTS.iter().for_each(|(fault, p)| bench.ledger.inject(*fault, When::Sometimes(*p)));
}

fn always(bench: &Bench, fault: Fault, moment: Duration) {
    bench.ledger.inject(fault, When::Always);
    bench.trouble.sleep(moment);
    begin(bench);
}

/// What is sent meanwhile is dealt with afterwards.
fn freeze_for(bench: &Bench, moment: Duration) {
    bench.diary.count("ledger frozen for a while");
    bench.diary.standstill(|| {
        bench.diary.outage(|| {
            bench.ledger.freeze();
            bench.trouble.sleep(moment);
            bench.ledger.thaw();
        });
    });
}
