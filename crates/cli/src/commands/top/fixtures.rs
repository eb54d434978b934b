//! A view for the tests.

use std::time::{Duration, Instant};

use super::{
    rates::Rates,
    reading::{HeldReading, Parts, Reading, ServiceReading},
    view::{Answer, View},
};

pub(super) fn view() -> View {
    let mut view = View::new("http://127.0.0.1:8080".to_owned(), Duration::from_secs(2));
    view.apply(Answer::Reading(Ok(Box::new(reading()))), Instant::now());
    view
}

pub(super) fn reading() -> Reading {
    let service = |name: &str, open: u64, seconds: u64| ServiceReading {
        id: format!("c::{name}"),
        open,
        age: Duration::from_secs(seconds),
        is_claimed: true,
        ..ServiceReading::default()
    };
    let held = HeldReading {
        id: "5a".repeat(64),
        service: "c::held".to_owned(),
        since: Some(Duration::from_secs(400)),
        reason: "nothing proves that it was applied\u{1b}[2J".to_owned(),
    };
    Reading {
        services: vec![
            service("busy", 900, 3),
            service("old", 17, 4_000),
            ServiceReading {
                paused: Some("the update 表".to_owned()),
                ..service("paused", 5, 130)
            },
            ServiceReading { held: 1, ..service("held", 2, 500) },
        ],
        instances: Parts { count: 2, problems: vec!["second: drains".to_owned()] },
        nodes: Parts { count: 2, problems: vec!["http://two: does not answer".to_owned()] },
        held: vec![held],
        rates: Some(Rates {
            submitted: 12.5,
            committed: 12.0,
            of_services: [("c::busy".to_owned(), 11.5)].into(),
            is_sample: false,
        }),
        ..Reading::default()
    }
}
