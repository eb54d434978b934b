use grid_batch_core::{InstanceId, ServiceId};
use log::{info, warn};

use super::{ClaimStore, which::Claims};
use crate::{
    StoreError,
    recover::{no_lane, with_submitter},
    rows::{ServiceRow, limit, names},
    statement::Statement,
};

/// Which of its own services an instance gives up.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// Those of which it is sending nothing.
    All,
    /// The same of these.
    Of(&'a [ServiceId]),
    /// Those of which neither a submitter nor the ledger has anything. What the ledger has is better
    /// followed by who sent it: some evidence nobody else can give.
    Surplus,
}

impl ClaimStore {
    /// Gives all claims up and removes the instance, at its end: others take the services at once.
    /// Answers how many those are.
    ///
    /// A service of which something is being sent is not given up, and then the instance stays until
    /// its expiries have passed: so first end the submitter.
    pub fn release(&self) -> Result<usize, StoreError> {
        let instance = self.instance();
        let mut released = 0;
        loop {
            let step = self.give_up(&instance, Part::All, self.step())?;
            released += step;
            if step == 0 {
                break;
            }
        }
        match self.unregister(&instance)? {
            true => info!(instance:%, services = released; "the instance is released"),
            false => warn!(instance:%, services = released;
                "the instance is still sending: the rest of its services waits for its expiries"),
        }
        Ok(released)
    }

    /// Gives up those of these services of which nothing is being sent, and says how many.
    pub fn release_some(&self, services: &[ServiceId]) -> Result<usize, StoreError> {
        let instance = self.instance();
        services
            .chunks(self.step())
            .map(|services| self.give_up(&instance, Part::Of(services), services.len()))
            .sum()
    }

    /// Gives up to `count` services up, in one commit.
    pub(super) fn give_up(
        &self,
        instance: &InstanceId,
        part: Part<'_>,
        count: usize,
    ) -> Result<usize, StoreError> {
        self.store.pools.write()?.transaction(|connection| {
            let rows: Vec<ServiceRow> = connection.load(&self.lock_own(instance, part, count))?;
            let services = rows.iter().map(ServiceRow::read).collect::<Result<Vec<_>, _>>()?;
            // Looked at again under the lock: a batch may have been marked before.
            let not_sending = no_lane("x", &with_submitter("s"));
            let give_up = self
                .store
                .statement(format!(
                    "-- give_up
                     update service_id_claims set claimant = null
                     from {{x}}
                     where service_id_claims.service_id = x.service_id and {not_sending}"
                ))
                .rows(names(&services));
            connection.execute(&give_up)
        })
    }

    fn lock_own<'a>(
        &self,
        instance: &'a InstanceId,
        part: Part<'a>,
        count: usize,
    ) -> Statement<'a> {
        let with_submitter = with_submitter("s");
        let (suffix, claims, kept) = match part {
            Part::All => ("", Claims::All, with_submitter.as_str()),
            Part::Of(_) => ("_of", Claims::Named, with_submitter.as_str()),
            Part::Surplus => ("_surplus", Claims::All, "s.submitted"),
        };
        let claims = claims.locked(self.store.pools.dialect(), "= ?");
        let not_kept = no_lane("f", kept);
        let statement = self
            .store
            .statement(format!(
                "-- lock_own{suffix}
                 select f.service_id
                 from ({claims}) as f
                 where {not_kept}
                 limit ?"
            ))
            .text(instance.as_str())
            .long(limit(count));
        match part {
            Part::Of(services) => statement.rows(names(services)),
            Part::All | Part::Surplus => statement,
        }
    }
}
