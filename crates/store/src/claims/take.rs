use grid_batch_core::{ServiceId, Takeover};

use super::ClaimStore;
use crate::StoreError;

impl ClaimStore {
    /// Takes up to `count` services that nobody works on: that nobody claims, or an instance that
    /// has let its second expiry pass, or its first where it is sending nothing of the service.
    ///
    /// A step is one commit; where a later one fails, the earlier ones stand. What was with a
    /// submitter is in doubt when its service is taken. An instance that has let its own first
    /// expiry pass takes nothing.
    pub fn take(&self, count: usize) -> Result<Takeover, StoreError> {
        let mut left = if self.options.even_out { self.even_out(count)? } else { count };
        let mut takeover = Takeover::default();
        while left > 0 {
            let step = left.min(self.step());
            let taken = self.take_step(None, step)?;
            let was_last = taken.claims.len() < step;
            left -= taken.claims.len();
            takeover.extend(taken);
            if was_last {
                break;
            }
        }
        Ok(takeover)
    }

    /// Takes those of these services that nobody works on: a batch was just handed in, and need not
    /// wait until its service's turn comes. No fair share is looked at.
    pub fn take_services(&self, services: &[ServiceId]) -> Result<Takeover, StoreError> {
        let mut takeover = Takeover::default();
        for services in services.chunks(self.step()) {
            let free = self.perhaps_free(services)?;
            if !free.is_empty() {
                takeover.extend(self.take_step(Some(&free), free.len())?);
            }
        }
        Ok(takeover)
    }

    /// How many services change hands in one commit.
    pub(super) fn step(&self) -> usize {
        self.options.step.max(1)
    }

    fn take_step(&self, among: Option<&[ServiceId]>, count: usize) -> Result<Takeover, StoreError> {
        let instance = self.instance();
        self.store.pools.write()?.transaction(|connection| {
            if !self.lives(connection, &instance)? {
                return Ok(Takeover::default());
            }
            let found = self.lock_free(connection, among, count)?;
            let takeover = self.hand_over(connection, found, &instance)?;
            if among.is_none() && takeover.claims.len() < count {
                self.forget_dead(connection)?;
            }
            Ok(takeover)
        })
    }
}
