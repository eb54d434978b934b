use std::time::Instant;

use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_support::wait::wait_until;
use serde_json::{Value, json};

use super::group::InstanceGroup;
use crate::harness::BatchServer;

const SERVICES: usize = 4;

#[track_caller]
fn post(server: &BatchServer, path: &str) {
    let response = server.post_json(path, &json!({"reason": "maintenance"}));
    assert_eq!(response.status, 200, "{response:?}");
}

#[test]
fn drained_instance_hands_its_services_over() {
    let group = InstanceGroup::new(SERVICES);
    let first = group.start("first");
    first.submit(&group.batches(0));
    group.wait_until_claimed_by("first", SERVICES);
    let second = group.start("second");
    wait_until("the second instance has a lease", || !group.active_runs("second").is_empty());

    post(&second, "/v1/instances/first/drain");
    group.wait_until_claimed_by("second", SERVICES);
    // It accepts batches, and the other one sends them.
    first.submit(&group.batches(1));
    group.harness.wait_until_all_committed(&[group.batches(0), group.batches(1)].concat());
    assert_eq!(group.claimed_by("first"), 0);
    let claims = second.get("/v1/claims");
    let instances = claims["instances"].as_array().unwrap();
    let draining = |name: &str| {
        instances.iter().find(|it| it["name"] == name).map(|it| it["draining"] == true)
    };
    assert_eq!((draining("first"), draining("second")), (Some(true), Some(false)), "{claims}");
    post(&first, "/v1/instances/first/resume");
    first.stop();
    second.stop();
}

/// A batch that stays where it is: the instance that gave it up does not say that its service stands still.
#[test]
fn released_service_is_not_reported_as_standing_still() {
    let group = InstanceGroup::new(1);
    group.harness.ledger.inject(Fault::DroppedValid, When::Always);
    // What is under way is remembered for two minutes, and never held.
    let slow = [
        ("--testing-warn-after", "2s"),
        ("--testing-longest-interval", "60s"),
        ("--poll-hold-after", "10min"),
        ("--poll-give-up-after", "1h"),
        ("--ledger-late-arrival-limit", "10min"),
    ];
    let first = group.start_with("first", &slow);
    first.submit(&group.batches(0));
    group.wait_until_claimed_by("first", 1);
    let standing_still =
        |server: &BatchServer| server.get("/health")["parts"]["services"]["stalled"].clone();
    wait_until("the service stands still", || standing_still(&first) == 1);
    let second = group.start_with("second", &slow);
    wait_until("the second instance has a lease", || !group.active_runs("second").is_empty());

    post(&second, "/v1/instances/first/drain");
    group.wait_until_claimed_by("second", 1);
    let given_up = Instant::now();
    wait_until("the first instance reports it no more", || standing_still(&first) == 0);
    println!("reported no more after {:.2?}", given_up.elapsed());
    wait_until("the second instance reports it", || standing_still(&second) == 1);
    assert_eq!(standing_still(&first), 0);
    first.stop();
    second.stop();
}

#[test]
fn pause_holds_on_every_instance() {
    let group = InstanceGroup::new(SERVICES);
    let [first, second] = ["first", "second"].map(|name| group.start(name));
    post(&first, "/v1/pause");
    let batches = group.batches(0);
    second.submit(&batches);
    let path = format!("/v1/batches/{}/explain", batches[0].batch_id);
    wait_until("the batch waits for the end of the pause", || {
        let explanation = second.get(&path);
        explanation["wait"]["cause"] == "paused"
            && explanation["service"]["paused"]["reason"] == "maintenance"
    });
    let received = |id| group.harness.ledger.times_received(id);
    assert!(batches.iter().all(|batch| received(&batch.batch_id) == 0));
    post(&second, "/v1/resume");
    group.harness.wait_until_all_committed(&batches);
    first.stop();
    second.stop();
}

#[test]
fn feed_is_the_same_at_every_instance() {
    let group = InstanceGroup::new(SERVICES);
    let [first, second] = ["first", "second"].map(|name| group.start(name));
    first.submit(&group.batches(0));
    second.submit(&group.batches(1));
    group.harness.wait_until_all_committed(&[group.batches(0), group.batches(1)].concat());
    let read = |server: &BatchServer| {
        let mut events = Vec::new();
        let mut after = "oldest".to_owned();
        loop {
            let page = server.get(&format!("/v1/events?limit=7&after={after}"));
            events.extend(page["data"].as_array().unwrap().iter().cloned());
            after = page["next"].as_str().unwrap().to_owned();
            if page["more"] != true {
                return events;
            }
        }
    };
    let ends =
        |events: &[Value]| events.iter().filter(|event| event["state"] == "committed").count();
    wait_until("all commits are in the feed", || ends(&read(&first)) == 2 * SERVICES);
    assert_eq!(read(&first), read(&second));
    first.stop();
    second.stop();
}
