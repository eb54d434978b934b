//! Instances that are killed, paused and stopped, and started again.

use std::{thread, time::Duration};

use crate::{
    bench::Bench,
    dice::{Deck, Dice},
    instance::Instance,
    settings::EXPIRY_2,
    until::until_some,
};

const BETWEEN_STARTS: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy)]
enum Deed {
    Kill,
    Pause,
    Stop,
}

/// Torments the instances of a place, and leaves one that serves.
pub fn trouble(bench: &Bench, place: usize, mut dice: Dice) -> Instance {
    let deeds = [Deed::Kill, Deed::Pause, Deed::Stop, Deed::Kill];
    let first = place % deeds.len();
    let mut deck = Deck::new(&[&deeds[first..], &deeds[..first]].concat());
    let mut instance = start(bench, place);
    while bench.trouble.sleep(dice.millis(800..4_000)) {
        let ended = instance.has_ended();
        assert_eq!(ended, None, "{} has ended by itself", bench.places[place].name);
        let gone = match deck.draw(&mut dice) {
            Deed::Pause => {
                let pause = EXPIRY_2 + dice.millis(0..1_000);
                pause_for(bench, &instance, pause);
                continue;
            }
            Deed::Kill => {
                bench.diary.count("instances killed");
                leave(bench, place);
                instance.kill();
                dice.millis(0..3_000)
            }
            Deed::Stop => {
                bench.diary.count("instances stopped");
                leave(bench, place);
                stop(bench, place, instance);
                dice.millis(0..1_000)
            }
        };
        bench.trouble.sleep(gone);
        instance = start(bench, place);
    }
    instance
}

pub fn stop(bench: &Bench, place: usize, instance: Instance) {
    let name = &bench.places[place].name;
    let status = instance.stop();
    let status = status.unwrap_or_else(|threads| panic!("{name} does not end, with {threads}"));
    assert!(status.success(), "{name} ended with {status} when it was told to end");
}

/// As whatever looks after a process does: one that does not start is started again.
fn start(bench: &Bench, place: usize) -> Instance {
    let instance = until_some("an instance starts", || {
        let instance = bench.places[place].start(bench.command());
        if instance.is_none() {
            bench.diary.count("starts in vain, without a database");
            thread::sleep(BETWEEN_STARTS);
        }
        instance
    });
    bench.addresses.lock().unwrap()[place] = Some(instance.address);
    bench.diary.works();
    instance
}

fn leave(bench: &Bench, place: usize) {
    bench.addresses.lock().unwrap()[place] = None;
    bench.diary.rests();
}

/// Clients still find it, and wait in vain.
fn pause_for(bench: &Bench, instance: &Instance, pause: Duration) {
    bench.diary.count("instances paused");
    bench.diary.standstill(|| {
        instance.signal("STOP");
        bench.diary.rests();
        bench.trouble.sleep(pause);
        instance.signal("CONT");
        bench.diary.works();
    });
}
