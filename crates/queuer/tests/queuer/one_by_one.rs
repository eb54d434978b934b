//! In whatever order a strategy submits batches, the state of the ledger is the same as if they were applied one by one
//! in the order of acceptance.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use grid_batch_core::batches::{AddressPrefix, BatchState, DeclaredAccess, StoredBatch};
use grid_batch_core::queue::{Scheduling, StrategyKind};
use grid_batch_core::{ItemId, Timestamp};
use grid_batch_queuer::{Dependency, Next, OpenBatch, schedule};
use proptest::{collection::vec, prelude::*, sample::Index};

use BatchState::{Absent, Committed, Delayed, Invalid, Pending};

const NOW: Timestamp = Timestamp::from_micros(1_000);

/// All addresses of the ledger in these tests, in bytes of two digits.
const ADDRESSES: [&str; 4] = ["0000", "0001", "0100", "0101"];

/// A batch that writes a function of what it reads, so that a wrong order is noticed.
#[derive(Debug, Clone)]
struct Content {
    access: DeclaredAccess,
    /// It is invalid if the hash of what it reads is divisible by this.
    invalid_one_in: u64,
}

type LedgerState = BTreeMap<&'static str, u64>;

/// Applies a batch, and returns whether it is valid. Invalid ones change nothing.
fn apply(state: &mut LedgerState, number: usize, content: &Content) -> bool {
    let below = |prefixes: &[AddressPrefix], address: &str| {
        prefixes.iter().any(|prefix| prefix.covers(&AddressPrefix::new(address)))
    };
    let (reads, writes) = (content.access.reads(), content.access.writes());
    let mut hasher = DefaultHasher::new();
    number.hash(&mut hasher);
    let read = ADDRESSES.iter().filter(|it| below(reads, it) || below(writes, it));
    read.for_each(|address| state.get(address).hash(&mut hasher));
    let hash = hasher.finish();
    let is_valid = !hash.is_multiple_of(content.invalid_one_in);
    if is_valid {
        let written = ADDRESSES.iter().filter(|it| below(writes, it));
        state.extend(written.map(|address| (*address, hash)));
    }
    is_valid
}

fn transaction(number: usize) -> ItemId {
    ItemId::from_bytes([number as u8; 64])
}

/// Batches that may depend on transactions of earlier ones.
fn contents() -> impl proptest::strategy::Strategy<Value = Vec<Content>> {
    let prefixes = || vec("([0-1]{2}){0,2}", 0..3);
    let content = (prefixes(), prefixes(), prop::option::weighted(0.2, any::<Index>()), 2..6u64);
    vec(content, 1..12).prop_map(|contents| {
        let content = |(number, (reads, writes, dependency, invalid_one_in))| {
            let prefixes = |texts: Vec<String>| {
                texts.iter().map(|text| AddressPrefix::new(text)).collect::<Vec<_>>()
            };
            let dependency: Option<Index> = dependency;
            let earlier = dependency.filter(|_| number > 0).map(|index| index.index(number));
            let dependencies = earlier.map(transaction);
            let access = DeclaredAccess::new(prefixes(reads), prefixes(writes), dependencies);
            Content { access, invalid_one_in }
        };
        contents.into_iter().enumerate().map(content).collect()
    })
}

/// The end of each batch and the state, when they are applied one by one.
fn one_by_one(contents: &[Content]) -> (Vec<BatchState>, LedgerState) {
    let (mut ends, mut state) = (Vec::new(), LedgerState::new());
    for (number, content) in contents.iter().enumerate() {
        let lacks = |id: &ItemId| ends[usize::from(id.as_bytes()[0])] == Invalid;
        let is_valid =
            !content.access.dependencies().iter().any(lacks) && apply(&mut state, number, content);
        ends.push(if is_valid { Committed } else { Invalid });
    }
    (ends, state)
}

/// A service whose batches are submitted by a strategy.
struct Run<'a> {
    strategy: StrategyKind,
    lanes: u32,
    contents: &'a [Content],
    batches: Vec<StoredBatch>,
    /// The queue of the ledger.
    queue: Vec<usize>,
    state: LedgerState,
    most_under_way: usize,
}

impl<'a> Run<'a> {
    fn new(strategy: StrategyKind, lanes: u32, contents: &'a [Content]) -> Self {
        let stored = |number: usize| {
            StoredBatch::new(
                "global".parse().unwrap(),
                transaction(number),
                Timestamp::from_micros(number as i64),
            )
        };
        let batches = (0..contents.len()).map(stored).collect();
        let (queue, state) = (Vec::new(), LedgerState::new());
        Self { strategy, lanes, contents, batches, queue, state, most_under_way: 0 }
    }

    fn state_of(&mut self, number: usize) -> &mut BatchState {
        &mut self.batches[number].progress.state
    }

    fn dependency(&self, id: ItemId) -> Dependency {
        let batch = &self.batches[usize::from(id.as_bytes()[0])];
        match batch.progress.state {
            Committed => Dependency::Applied,
            Invalid => Dependency::Invalid,
            _ => Dependency::Open(batch.batch_id),
        }
    }

    /// The open batches with what is next for each.
    fn next(&self) -> Vec<(usize, Next<'_>)> {
        let numbers = (0..self.batches.len())
            .filter(|number| !self.batches[*number].progress.state.is_terminal());
        let open = numbers.clone().map(|number| OpenBatch {
            batch: &self.batches[number],
            position: Some(self.batches[number].created_at),
            access: &self.contents[number].access,
            halts: false,
        });
        let open: Vec<_> = open.collect();
        let lanes = if self.strategy == StrategyKind::Serial { 1 } else { self.lanes };
        let scheduling = Scheduling { strategy: self.strategy, lanes, ..Scheduling::SERIAL };
        let next = schedule(scheduling, &open, &|id| self.dependency(id), NOW);
        numbers.zip(next).collect()
    }

    /// One of the possible steps. `false`: all batches have ended.
    fn step(&mut self, choose: impl Fn(usize) -> usize, fault: u8) -> bool {
        let mut submit = Vec::new();
        let mut end = Vec::new();
        for (number, next) in self.next() {
            match next {
                Next::Submit => submit.push(number),
                Next::EndAsInvalid(_) => end.push(number),
                Next::Wait(_) => {}
            }
        }
        end.into_iter().for_each(|number| *self.state_of(number) = Invalid);
        self.most_under_way = self.most_under_way.max(self.queue.len());
        let possible = submit.len() + self.queue.len();
        if possible == 0 {
            return self.batches.iter().any(|batch| !batch.progress.state.is_terminal());
        }
        match choose(possible) {
            chosen if chosen < submit.len() => self.submit(submit[chosen], fault),
            chosen => self.apply_or_lose(chosen - submit.len(), fault),
        }
        true
    }

    fn submit(&mut self, number: usize, fault: u8) {
        if fault == 0 {
            *self.state_of(number) = Delayed;
        } else {
            *self.state_of(number) = Pending;
            self.queue.push(number);
        }
    }

    /// The ledger applies a batch of its queue: the first, or any if the order is not kept. With a fault, it restarts
    /// and loses the batch or, in a pipeline, that batch and all after it.
    fn apply_or_lose(&mut self, at: usize, fault: u8) {
        let keeps_order = self.strategy == StrategyKind::Pipeline;
        if fault == 0 {
            let lost =
                if keeps_order { self.queue.split_off(at) } else { vec![self.queue.remove(at)] };
            lost.into_iter().for_each(|number| *self.state_of(number) = Absent);
            return;
        }
        let number = self.queue.remove(if keeps_order { 0 } else { at });
        let is_valid = apply(&mut self.state, number, &self.contents[number]);
        *self.state_of(number) = if is_valid { Committed } else { Invalid };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn each_strategy_ends_like_one_by_one(
        contents in contents(),
        lanes in 1..12u32,
        steps in vec((any::<Index>(), 0..6u8), 600),
    ) {
        let (ends, state) = one_by_one(&contents);
        for strategy in StrategyKind::ALL {
            let mut run = Run::new(strategy, lanes, &contents);
            let ended = steps.iter().any(|(choice, fault)| !run.step(|possible| choice.index(possible), *fault));
            prop_assert!(ended, "{:?} does not end", strategy);
            let found: Vec<_> = run.batches.iter().map(|batch| batch.progress.state).collect();
            prop_assert_eq!(&found, &ends, "{:?}", strategy);
            prop_assert_eq!(&run.state, &state, "{:?}", strategy);
        }
    }
}

#[test]
fn independent_batches_are_under_way_together() {
    let content = |address: &str| Content {
        access: DeclaredAccess::new([], [AddressPrefix::new(address)], []),
        invalid_one_in: u64::MAX,
    };
    let contents = ADDRESSES.map(content);
    for (strategy, most) in
        [(StrategyKind::Serial, 1), (StrategyKind::Parallel, 4), (StrategyKind::Pipeline, 4)]
    {
        let mut run = Run::new(strategy, 9, &contents);
        while run.step(|_| 0, 1) {}
        assert_eq!(run.most_under_way, most, "{strategy:?}");
    }
}
