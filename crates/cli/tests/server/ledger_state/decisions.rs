//! Decisions of operators about invalid batches that stop others.

use std::collections::{HashMap, HashSet};

use fastrand::Rng;
use grid_batch_core::ItemId;
use grid_batch_core::queue::StrategyKind;
use grid_batch_store::Store;

use super::run::{Accepted, Run, stored};

pub(super) struct Decisions {
    strategy: StrategyKind,
    random: Rng,
    /// The invalid batches after which others were ended, with the number of batches that were accepted by then: a
    /// later one is not stopped.
    ended_after: HashMap<ItemId, usize>,
}

impl Decisions {
    pub(super) fn new(strategy: StrategyKind, random: Rng) -> Self {
        Self { strategy, random, ended_after: HashMap::new() }
    }

    /// Decides about each batch that stops others, at random.
    pub(super) fn decide(&mut self, run: &Run, store: &Store) {
        for halt in store.halts(None, 20).unwrap() {
            let (service, id) = (&halt.batch.service_id, &halt.batch.batch_id);
            self.expect_stopped(run, id);
            if self.random.usize(..5) == 0 {
                self.ended_after.entry(*id).or_insert(run.accepted.len());
                store.end_following(service, id, "they build on it").unwrap();
            } else {
                store.continue_after(service, id, None).unwrap();
            }
        }
    }

    /// Nothing that an invalid batch stops was sent: what comes after it and conflicts with it. A pipeline sends ahead.
    fn expect_stopped(&self, run: &Run, invalid: &ItemId) {
        if self.strategy == StrategyKind::Pipeline {
            return;
        }
        let first = run.accepted.iter().position(|it| it.id == *invalid).unwrap();
        let end = self.ended_after.get(invalid).copied().unwrap_or(run.accepted.len());
        let (invalid, later) = (&run.accepted[first], &run.accepted[first + 1..end]);
        let has_place = |it: &Accepted| it.access.dependencies().is_empty();
        if !has_place(invalid) {
            return;
        }
        for batch in later.iter().filter(|it| has_place(it)) {
            if batch.access.conflicts_with(&invalid.access) {
                let times = run.harness.ledger.times_received(&batch.id);
                assert_eq!(times, 0, "{} was sent though {} is invalid", batch.id, invalid.id);
            }
        }
    }

    /// The batches that were ended by a decision. Each follows an invalid one.
    pub(super) fn ended(&self, run: &Run, store: &Store) -> Vec<ItemId> {
        let was_ended = |it: &&Accepted| {
            let error = stored(store, &it.id).last_error;
            let texts =
                ["an operator ended what follows", "an operator decided that it is not sent"];
            error.is_some_and(|error| texts.iter().any(|text| error.contains(text)))
        };
        let ended: Vec<ItemId> = run.accepted.iter().filter(was_ended).map(|it| it.id).collect();
        let causes = ended.iter().chain(self.ended_after.keys()).copied().collect();
        for id in &ended {
            assert!(self.follows_one(run, id, &causes), "{id} was ended and follows nothing");
        }
        ended
    }

    /// Whether a batch comes after one of these, and in the parallel strategy conflicts with it or depends
    /// on it.
    fn follows_one(&self, run: &Run, id: &ItemId, causes: &HashSet<ItemId>) -> bool {
        let index = run.accepted.iter().position(|it| it.id == *id).unwrap();
        let batch = &run.accepted[index];
        let is_late = |it: &Accepted| !it.access.dependencies().is_empty();
        run.accepted.iter().enumerate().any(|(other_index, other)| {
            let is_before = other_index < index || is_late(batch) || is_late(other);
            let depends = || {
                let ids = other.transaction_ids();
                batch.access.dependencies().iter().any(|id| ids.contains(id))
            };
            other.id != *id
                && causes.contains(&other.id)
                && is_before
                && (self.strategy != StrategyKind::Parallel
                    || batch.access.conflicts_with(&other.access)
                    || depends())
        })
    }
}

impl Accepted {
    fn transaction_ids(&self) -> Vec<ItemId> {
        let ids = self.batch.transactions.iter();
        ids.map(|transaction| transaction.header_signature.parse().unwrap()).collect()
    }
}
