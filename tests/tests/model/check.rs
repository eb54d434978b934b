//! How a configuration is looked through.

use std::{
    collections::{BTreeSet, HashMap},
    time::Instant,
};

use stateright::{Checker, Model};

use crate::{protocol::Protocol, state::State};

/// No harm takes longer to come about.
const LONGEST_PATH: usize = 25;

/// Looks at every state, and answers which properties do not hold.
pub fn broken(name: &str, protocol: Protocol) -> BTreeSet<&'static str> {
    let began = Instant::now();
    let checker = protocol.checker().threads(2).symmetry().spawn_dfs().join();
    println!("{name}: {} states in {:.1?}", checker.unique_state_count(), began.elapsed());
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

/// Finds a shortest way to a state in which this property does not hold, and prints it.
pub fn shortest_path_to(property: &'static str, protocol: &Protocol) {
    let within = |depth| {
        protocol.clone().checker().target_max_depth(depth).spawn_bfs().join().discovery(property)
    };
    let Some(path) = (1..=LONGEST_PATH).find_map(within) else {
        panic!("it holds that {property}, in {LONGEST_PATH} steps at least");
    };
    println!("not so: {property}");
    for action in path.into_actions() {
        println!("    {action}");
    }
}

/// Whether no state can be come back to. Then every path ends, since there are only so many states;
/// and that it ends well is a property of every state.
pub fn every_path_ends(protocol: &Protocol) {
    let mut is_on_path: HashMap<State, bool> = HashMap::new();
    let mut path: Vec<(State, Vec<State>)> = Vec::new();
    let mut ahead = protocol.init_states();
    loop {
        match ahead.pop() {
            Some(state) => match is_on_path.get(&state) {
                Some(true) => panic!("a path comes back to {state:?}"),
                Some(false) => {}
                None => {
                    is_on_path.insert(state.clone(), true);
                    let after = protocol.next_steps(&state).into_iter().map(|(_, next)| next);
                    path.push((state, std::mem::replace(&mut ahead, after.collect())));
                }
            },
            None => match path.pop() {
                Some((state, before)) => {
                    is_on_path.insert(state, false);
                    ahead = before;
                }
                None => break,
            },
        }
    }
    println!("every path ends: {} states", is_on_path.len());
}
