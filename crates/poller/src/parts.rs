use std::sync::Arc;

use grid_batch_core::{BatchStatus, Clock, PollPace};
use log::warn;

use crate::{
    EventFollower, MonitorCounters, MonitorOptions, PollTrigger,
    inquest::{Inquest, Policy},
    inquiry::{Detective, Reader},
    panics::catch,
    records::Records,
};

/// What a polling monitor is made of, whether it runs or not.
pub(crate) struct Parts<I, T> {
    pub(crate) records: Records<I, T>,
    pub(crate) reader: Reader<T>,
    pub(crate) detective: Option<Detective>,
    pub(crate) policy: Policy,
    pub(crate) options: MonitorOptions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) trigger: PollTrigger,
    pub(crate) events: Vec<EventFollower>,
}

impl<I, T> Parts<I, T> {
    pub(crate) fn counters(&self) -> &MonitorCounters {
        &self.records.counters
    }

    pub(crate) fn inquest(&self) -> Inquest {
        let (policy, clock) = (Arc::clone(&self.policy), Arc::clone(&self.clock));
        Inquest::new(policy, self.options.clone(), clock, self.counters().clone())
    }

    /// How often a batch is asked for, as things are.
    pub(crate) fn pace(&self) -> PollPace {
        let live = !self.events.is_empty() && self.events.iter().all(EventFollower::all_live);
        self.options.pace(live)
    }

    /// How many questions may be under way at once.
    pub(crate) fn connections(&self) -> usize
    where
        T: BatchStatus,
    {
        let asked = self.counters().survive(catch(|| Ok(self.reader.available_connections())));
        asked.unwrap_or_else(|error| {
            warn!(error:% = error; "the reader does not say how many connections it has");
            0
        })
    }
}
