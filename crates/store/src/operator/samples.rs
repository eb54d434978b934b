//! What all instances did in the last day: one row for each period, to which each instance adds.

use std::time::Duration;

use grid_batch_core::Timestamp;
use grid_batch_core::queries::Sample;

use crate::sql::{Statement, Store, StoreError, result_row};

impl Store {
    pub(crate) fn add_sample(&self, sample: &Sample) -> Result<(), StoreError> {
        let now = self.now();
        let period = micros(Sample::PERIOD);
        let add = Statement::new(
            "-- add_sample
             insert into samples (started_at, attempts, committed, invalid, open, oldest)
             values (?, ?, ?, ?, ?, ?)
             on conflict (started_at) do update set
                 attempts = samples.attempts + excluded.attempts,
                 committed = samples.committed + excluded.committed,
                 invalid = samples.invalid + excluded.invalid,
                 open = excluded.open, oldest = excluded.oldest",
        )
        .long(now.as_micros() / period * period)
        .long(stored(sample.attempts))
        .long(stored(sample.committed))
        .long(stored(sample.invalid))
        .long(stored(sample.open))
        .long(micros(sample.oldest));
        let remove = Statement::new("-- remove_samples\n delete from samples where started_at < ?")
            .long(now.minus(Sample::KEPT).as_micros());
        self.pools.write()?.write_transaction(|connection| {
            connection.execute(&add)?;
            connection.execute(&remove)?;
            Ok(())
        })
    }

    pub(crate) fn samples(
        &self,
        since: Timestamp,
        period: Duration,
    ) -> Result<Vec<Sample>, StoreError> {
        let period = micros(period.max(Sample::PERIOD));
        let statement = Statement::new(
            "-- read_samples
             select r.period, cast(sum(r.attempts) as bigint) as attempts,
                 cast(sum(r.committed) as bigint) as committed, cast(sum(r.invalid) as bigint) as invalid,
                 max(r.open) as open, max(r.oldest) as oldest
             from (
                 select s.started_at / ? as period, s.attempts, s.committed, s.invalid, s.open, s.oldest
                 from samples s where s.started_at >= ?
             ) as r group by r.period order by r.period",
        )
        .long(period)
        .long(since.as_micros() / period * period);
        let rows: Vec<SampleRow> = self.pools.read()?.load(&statement)?;
        let sample = |row: SampleRow| Sample {
            at: Timestamp::from_micros(row.period * period),
            attempts: row.attempts.unsigned_abs(),
            committed: row.committed.unsigned_abs(),
            invalid: row.invalid.unsigned_abs(),
            open: row.open.unsigned_abs(),
            oldest: Duration::from_micros(row.oldest.unsigned_abs()),
        };
        Ok(rows.into_iter().map(sample).collect())
    }
}

result_row! {
    struct SampleRow {
        period: i64,
        attempts: i64,
        committed: i64,
        invalid: i64,
        open: i64,
        oldest: i64,
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
