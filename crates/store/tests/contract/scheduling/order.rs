//! A property test: whatever is added and ends, the batches that can be under way are those that conflict with no
//! earlier open one.

use grid_batch_core::batches::{DeclaredAccess, NewBatch};
use proptest::{prelude::*, test_runner::TestCaseError};

use super::fixture::{SERVICE, ScheduledExt, accessing, numbers};
use crate::fixture::{Database, StoreExt, cases, on_both};

on_both! {
    store_takes_what_conflicts_with_no_earlier_batch,
}

/// A step of the test.
#[derive(Debug, Clone)]
enum Step {
    /// Batches are added in one list, each with what it reads and writes.
    Add(Vec<(Vec<String>, Vec<String>)>),
    /// All batches that can be taken are taken, and this part of them ends.
    End(usize),
}

/// Few addresses of few lengths, so that many overlap. Length 70 is always in use.
fn an_address() -> impl Strategy<Value = String> {
    let text =
        || "[ab]{1,4}".prop_map(|text| text.chars().flat_map(|c| [c, c]).collect::<String>());
    prop_oneof![text().prop_map(|text| super::fixture::address(&text)), text()]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let addresses = || prop::collection::vec(an_address(), 0..3);
    let written = prop::collection::vec(an_address(), 1..3);
    let batches = prop::collection::vec((addresses(), written), 1..5);
    let step = prop_oneof![batches.prop_map(Step::Add), (0..3_usize).prop_map(Step::End)];
    prop::collection::vec(step, 1..12)
}

fn store_takes_what_conflicts_with_no_earlier_batch(db: &Database) {
    cases(24).run(&steps(), |steps| check(&db.another(), steps)).unwrap();
}

fn check(db: &Database, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let store = db.open_parallel();
    // The lengths are known from the start, so that no batch waits for batches that were stored before its length was
    // in use.
    let lengths = ["aa", "aaaa", "aaaaaa", "aaaaaaaa"];
    store.add_all(&[accessing(SERVICE, 0, &[], &lengths[3..])]);
    store.add_all(&lengths.map(|text| accessing(SERVICE, text.len() as u64, &[text], &["ff"])));
    while store.depth(&crate::fixture::service(SERVICE)).unwrap() > 0 {
        store.commit(&store.take_up_to(99));
    }
    let mut open: Vec<(u64, DeclaredAccess)> = Vec::new();
    let mut under_way = Vec::new();
    let mut number = 100;
    for step in steps {
        match step {
            Step::Add(batches) => {
                let batch = |(reads, writes): (Vec<String>, Vec<String>)| {
                    number += 1;
                    let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
                    let writes: Vec<&str> = writes.iter().map(String::as_str).collect();
                    accessing(SERVICE, number, &reads, &writes)
                };
                let batches: Vec<NewBatch> = batches.into_iter().map(batch).collect();
                store.add_all(&batches);
                let first = number - batches.len() as u64 + 1;
                let access = batches.into_iter().filter_map(|batch| batch.declared_access);
                open.extend((first..).zip(access));
            }
            Step::End(part) => {
                under_way.extend(store.take_up_to(99));
                let mut taken = numbers(&under_way);
                taken.sort_unstable();
                prop_assert_eq!(taken, free(&open));
                let ending = under_way.split_off(under_way.len() - under_way.len() * part / 2);
                store.commit(&ending);
                let ended = numbers(&ending);
                open.retain(|(number, _)| !ended.contains(number));
            }
        }
    }
    while !open.is_empty() {
        under_way.extend(store.take_up_to(99));
        let mut taken = numbers(&under_way);
        taken.sort_unstable();
        prop_assert_eq!(&taken, &free(&open));
        store.commit(&under_way);
        under_way.clear();
        open.retain(|(number, _)| !taken.contains(number));
    }
    prop_assert_eq!(db.scheduling_rows(), 0);
    Ok(())
}

/// The batches that conflict with no earlier open one.
fn free(open: &[(u64, DeclaredAccess)]) -> Vec<u64> {
    let is_free =
        |at: usize| !open[..at].iter().any(|(_, other)| other.conflicts_with(&open[at].1));
    (0..open.len()).filter(|at| is_free(*at)).map(|at| open[at].0).collect()
}
