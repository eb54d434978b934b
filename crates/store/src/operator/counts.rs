use std::time::Duration;

use grid_batch_core::claims::InstanceId;
use grid_batch_core::queries::{
    BatchCounts, OpenStates, PoolConnections, QueueCounts, QueueDepth, Sample, ServiceCounts,
};
use grid_batch_core::{BatchResult, Timestamp};

use crate::sql::Store;

impl BatchCounts for Store {
    fn service_counts(&self) -> BatchResult<ServiceCounts> {
        Ok(self.service_counts()?)
    }

    fn queue_counts(&self) -> BatchResult<QueueCounts> {
        Ok(self.queue_counts()?)
    }

    fn open_states(&self) -> BatchResult<OpenStates> {
        Ok(self.open_states()?)
    }

    fn depths(&self) -> BatchResult<Vec<QueueDepth>> {
        Ok(self.depths(None, usize::MAX)?)
    }

    fn count_claims(&self, instance: &InstanceId) -> BatchResult<u64> {
        Ok(self.count_claims(instance)?)
    }

    fn add_sample(&self, sample: &Sample) -> BatchResult<()> {
        Ok(self.add_sample(sample)?)
    }

    fn samples(&self, since: Timestamp, period: Duration) -> BatchResult<Vec<Sample>> {
        Ok(self.samples(since, period)?)
    }

    fn connections(&self) -> Vec<PoolConnections> {
        self.connections()
    }

    fn events_written(&self) -> u64 {
        self.events_written()
    }
}
