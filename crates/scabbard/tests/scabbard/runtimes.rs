use grid_batch_core::{Evidence, LedgerStatus, Outcome};
use tokio::runtime::Builder;

use crate::{
    batches::transaction_id,
    world::{World, next},
};

#[test]
fn the_parts_work_on_one_runtime_after_the_other() {
    let world = World::new();
    for number in 1..=3 {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let mut events = world.listen().await;
            assert_eq!(world.send(number).await, Outcome::Accepted);
            while next(&mut events).await != transaction_id(number) {}
            assert_eq!(world.status(number).await, LedgerStatus::Committed);
            assert_eq!(world.evidence(number).await, Evidence::Committed);
        });
    }
}
