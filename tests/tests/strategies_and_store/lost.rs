//! A batch that overtook others and was lost, after the change to a strategy that keeps the order. Serial sends it again
//! before anything new, as its specification says; pipeline keeps the order.

use std::sync::Arc;

use grid_batch_core::batches::{AddressPrefix, BatchState, DeclaredAccess, Event, StoredBatch};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{Scheduling, StrategyKind};
use grid_batch_core::{ManualClock, Timestamp};

use crate::service::{Fixture, id, lanes};

fn writes(prefix: &str) -> DeclaredAccess {
    DeclaredAccess::new([], [AddressPrefix::new(prefix)], [])
}

impl Fixture {
    fn under_way(&self, number: usize) -> StoredBatch {
        let open = self.open_batches();
        open.into_iter().find(|batch| batch.batch_id == id(number)).unwrap()
    }
}

pub fn check_lost_batch(url: &str) {
    for (strategy, order) in [(StrategyKind::Serial, [2, 1]), (StrategyKind::Pipeline, [1, 2])] {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1)));
        let service = format!("to-{}", strategy.as_str()).parse().unwrap();
        let from = StrategyKind::Parallel;
        let scheduling = Scheduling { strategy: from, lanes: lanes(from), ..Scheduling::SERIAL };
        let mut fixture = Fixture::new(url, &clock, service, scheduling);

        fixture.add(vec![writes("11"), writes("11"), writes("22")]);
        assert_eq!(fixture.take(), [id(0), id(2)]);
        let lost = fixture.under_way(2);
        let attempt = lost.progress.attempts;
        let ambiguous = Event::Outcome { attempt, outcome: Outcome::Ambiguous };
        fixture.record(&lost, [ambiguous]);

        fixture.restart(strategy);
        let lost = fixture.under_way(2);
        fixture.record(&lost, [Event::Evidence { attempt, evidence: Evidence::Lost }]);
        assert_eq!(fixture.under_way(2).progress.state, BatchState::Absent);
        fixture.commit(&fixture.under_way(0));

        for number in order {
            assert_eq!(fixture.take(), [id(number)], "{strategy:?}");
            fixture.commit(&fixture.under_way(number));
        }
    }
}
