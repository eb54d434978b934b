//! Runs the checker on a configuration.

use std::{
    collections::{BTreeSet, HashMap},
    time::Instant,
};

use stateright::{Checker, Model};

use crate::{protocol::Protocol, state::State};

/// The maximum number of steps to a violation.
const LONGEST_PATH: usize = 25;

/// Checks every state, and returns the properties that do not hold.
pub fn violated_properties(name: &str, protocol: Protocol) -> BTreeSet<&'static str> {
    let started = Instant::now();
    let checker = protocol.checker().threads(2).symmetry().spawn_dfs().join();
    println!("{name}: {} states in {:.1?}", checker.unique_state_count(), started.elapsed());
    let properties = checker.model().properties();
    let discovered = checker.discoveries();
    properties
        .iter()
        .filter(|property| {
            discovered.contains_key(property.name) == property.expectation.discovery_is_failure()
        })
        .map(|property| property.name)
        .collect()
}

/// Checks that all properties hold.
pub fn assert_holds(name: &str, protocol: Protocol) {
    assert_eq!(violated_properties(name, protocol), BTreeSet::new());
}

/// Finds a shortest path to a state that violates this property, and prints it.
pub fn shortest_path_to(property: &'static str, protocol: &Protocol) {
    let within = |depth| {
        protocol.clone().checker().target_max_depth(depth).spawn_bfs().join().discovery(property)
    };
    let Some(path) = (1..=LONGEST_PATH).find_map(within) else {
        panic!("no violation within {LONGEST_PATH} steps: {property}");
    };
    println!("violated: {property}");
    for action in path.into_actions() {
        println!("    {action}");
    }
}

/// Checks that no path returns to an earlier state. Since the number of states is finite, every
/// path ends; a property of every state checks that it ends well.
pub fn every_path_ends(protocol: &Protocol) {
    let mut is_on_path: HashMap<State, bool> = HashMap::new();
    let mut path: Vec<(State, Vec<State>)> = Vec::new();
    let mut successors = protocol.init_states();
    loop {
        match successors.pop() {
            Some(state) => match is_on_path.get(&state) {
                Some(true) => panic!("a path returns to {state:?}"),
                Some(false) => {}
                None => {
                    is_on_path.insert(state.clone(), true);
                    let after = protocol.next_steps(&state).into_iter().map(|(_, next)| next);
                    path.push((state, std::mem::replace(&mut successors, after.collect())));
                }
            },
            None => match path.pop() {
                Some((state, before)) => {
                    is_on_path.insert(state, false);
                    successors = before;
                }
                None => break,
            },
        }
    }
    println!("every path ends: {} states", is_on_path.len());
}
