use std::time::Instant;

use crate::group::{Group, measured};

const SERVICES: usize = 300;

/// Waits until every one of these has its part, give or take a tenth.
fn evens_out(group: &Group, names: &[&str]) {
    let part = SERVICES / names.len();
    let fair = part * 9 / 10..=part * 11 / 10;
    let what = format!("{SERVICES} services are even among {}", names.join(", "));
    measured(&what, Instant::now(), || {
        names.iter().all(|name| fair.contains(&group.claimed_by(name)))
    });
}

#[test]
fn instances_that_share_even_out_and_do_so_again_when_one_leaves_and_one_joins() {
    let group = Group::new(SERVICES);
    let start = |name| group.start_with(name, &[("--claims-share", "true")]);
    let first = start("first");
    first.hand_in(&group.batches(0));
    evens_out(&group, &["first"]);

    let (second, third) = (start("second"), start("third"));
    evens_out(&group, &["first", "second", "third"]);
    third.stop();
    evens_out(&group, &["first", "second"]);
    let fourth = start("fourth");
    evens_out(&group, &["first", "second", "fourth"]);

    fourth.hand_in(&group.batches(1));
    group.bench.until_all_committed(&[group.batches(0), group.batches(1)].concat());
    [first, second, fourth].into_iter().for_each(crate::bench::Serving::stop);
}
