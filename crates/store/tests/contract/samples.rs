use std::time::Duration;

use grid_batch_core::Timestamp;
use grid_batch_core::queries::{BatchCounts, Sample};

use crate::fixture::{Database, on_both};

on_both! {
    samples_of_one_period_are_added_up,
    longer_periods_have_the_sums_and_the_largest_values,
    samples_are_kept_for_a_day,
}

fn sample(committed: u64, open: u64) -> Sample {
    Sample { committed, open, attempts: 2, invalid: 1, ..Sample::default() }
}

fn samples(store: &impl BatchCounts, period: Duration) -> Vec<(i64, u64, u64, u64, u64)> {
    let read = store.samples(Timestamp::from_micros(0), period).unwrap();
    let second = |it: &Sample| it.at.as_micros() / 1_000_000;
    read.iter().map(|it| (second(it), it.attempts, it.committed, it.invalid, it.open)).collect()
}

fn samples_of_one_period_are_added_up(db: &Database) {
    let (store, other) = (db.open(), db.open());
    store.add_sample(&sample(3, 5)).unwrap();
    db.clock.advance(Duration::from_secs(2));
    other.add_sample(&sample(4, 6)).unwrap();
    db.clock.advance(Sample::PERIOD);
    store.add_sample(&sample(1, 7)).unwrap();
    assert_eq!(samples(&*store, Sample::PERIOD), [(0, 4, 7, 2, 6), (10, 2, 1, 1, 7)]);
}

fn longer_periods_have_the_sums_and_the_largest_values(db: &Database) {
    let store = db.open();
    for (committed, open) in [(1, 9), (2, 4), (3, 3)] {
        store.add_sample(&sample(committed, open)).unwrap();
        db.clock.advance(Sample::PERIOD);
    }
    assert_eq!(samples(&*store, Sample::PERIOD * 2), [(0, 4, 3, 2, 9), (20, 2, 3, 1, 3)]);
}

fn samples_are_kept_for_a_day(db: &Database) {
    let store = db.open();
    store.add_sample(&sample(1, 1)).unwrap();
    db.clock.advance(Sample::KEPT + Sample::PERIOD);
    store.add_sample(&sample(2, 2)).unwrap();
    assert_eq!(samples(&*store, Sample::PERIOD).len(), 1);
}
