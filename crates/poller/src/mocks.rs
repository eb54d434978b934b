//! `mockall` mocks of the traits, for tests of the layers above.
#![expect(missing_docs, reason = "each mock and its methods are described by the trait it mocks")]

use futures_util::future::BoxFuture;
use grid_batch_core::BatchResult;
use grid_batch_core::batches::StatusReport;
use mockall::mock;

use crate::BatchStatusReader;

// `mockall` cannot set expectations on methods whose result borrows from their arguments. This mock has a method of
// the same name with a `'static` result, and the trait's method calls it.
mock! {
    pub BatchStatusReader {
        pub fn get_batch_statuses(&self, service_id: &str, batch_ids: &[String])
            -> BoxFuture<'static, BatchResult<Vec<StatusReport>>>;
        pub fn available_connections(&self) -> usize;
    }
}

impl BatchStatusReader for MockBatchStatusReader {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Self::get_batch_statuses(self, service_id, batch_ids)
    }

    fn available_connections(&self) -> usize {
        Self::available_connections(self)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn ask(reader: &dyn BatchStatusReader<Status = StatusReport>) -> usize {
        let statuses = reader.get_batch_statuses("a", &[]).now_or_never().unwrap().unwrap();
        statuses.len() + reader.available_connections()
    }

    #[test]
    fn mocked_reader_returns_statuses() {
        let mut reader = MockBatchStatusReader::new();
        reader.expect_get_batch_statuses().returning(|_, _| Box::pin(async { Ok(Vec::new()) }));
        reader.expect_available_connections().return_const(4_usize);
        assert_eq!(ask(&reader), 4);
    }
}
