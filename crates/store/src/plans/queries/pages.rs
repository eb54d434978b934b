//! The plans of pages of batches. Each page walks along one index.

use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::{
    BatchQueryStore, BatchSelection, ListCursor, ListedBatch, PageOrder,
};
use grid_batch_core::{ServiceId, Timestamp};

use super::{
    plans_of,
    tests::{BUSY_LANES, NOTHING, PlannedQuery},
};
use crate::Store;

/// The pages of every kind of selection, in both orders, from the start and from a position in the middle.
pub(super) fn planned_pages(store: &Store, services: &[ServiceId]) -> Vec<PlannedQuery> {
    let first = |selection: &BatchSelection| -> ListedBatch {
        let page = store.batch_page(selection, PageOrder::OldestFirst, None, 1).unwrap();
        page.batches.into_iter().next().unwrap()
    };
    let label = Some("of a client".parse().unwrap());
    let all = BatchSelection::default;
    let batch = first(&all()).batch;
    let middle = ListCursor { number: 5_000, stored_at: batch.created_at };
    let service_id = Some(services[0].clone());
    let later = Some(batch.created_at.plus(std::time::Duration::from_secs(3_600)));
    let of = |states: &[BatchState]| BatchSelection {
        states: states.iter().copied().collect(),
        ..all()
    };
    let (new, under_way) = (BatchState::New, BatchState::Pending);
    let selections: [(BatchSelection, &'static [&'static str]); 10] = [
        (all(), NOTHING),
        (BatchSelection { label, ..all() }, NOTHING),
        (BatchSelection { service_id: service_id.clone(), ..all() }, NOTHING),
        (BatchSelection { service_id: service_id.clone(), ..of(&[new]) }, NOTHING),
        (BatchSelection { stored_before: later, ..all() }, NOTHING),
        (BatchSelection { stored_from: Some(Timestamp::from_micros(5)), ..all() }, NOTHING),
        (of(&[BatchState::Invalid]), NOTHING),
        (of(&[new, under_way]), BUSY_LANES),
        (of(&[under_way]), BUSY_LANES),
        (BatchSelection { held: Some(true), ..all() }, BUSY_LANES),
    ];
    let mut queries = Vec::new();
    for (selection, may_scan) in &selections {
        for (order, after) in [
            (PageOrder::OldestFirst, None),
            (PageOrder::NewestFirst, None),
            (PageOrder::OldestFirst, Some(middle)),
            (PageOrder::NewestFirst, Some(middle)),
        ] {
            let plans = plans_of(|| {
                let page = store.batch_page(selection, order, after, 50).unwrap();
                assert!(page.batches.iter().all(|listed| selection.selects(listed)));
            });
            queries.extend(plans.into_iter().map(|(name, plan)| PlannedQuery {
                asked: format!("page of {selection:?}, {order:?}: {name}"),
                may_scan,
                plan,
            }));
        }
    }
    queries
}
