use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use grid_batch_core::{Clock, Timestamp};
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::sleep,
};

use crate::{Fault, answer::Reply, ask::Ask, common::Common, ledger::Ledger};

/// How often a clock that may be driven by a test is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// What the handle and the server both hold.
pub(crate) struct Shared {
    world: Mutex<World>,
    clock: Arc<dyn Clock>,
    frozen: watch::Sender<bool>,
    /// Counts the restarts.
    life: watch::Sender<u64>,
    busy: Notify,
    pub(crate) workers: Semaphore,
    pub(crate) body_limit: usize,
    pub(crate) has_capital_headers: bool,
}

pub(crate) struct World {
    pub(crate) ledger: Box<dyn Ledger>,
    pub(crate) common: Common,
}

/// The connection is to be reset.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the connection is reset, as it was told to")]
pub(crate) struct Reset;

impl Shared {
    pub(crate) fn new(ledger: Box<dyn Ledger>, common: Common, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            frozen: watch::Sender::new(false),
            life: watch::Sender::new(0),
            busy: Notify::new(),
            workers: Semaphore::new(ledger.workers()),
            body_limit: ledger.body_limit(),
            has_capital_headers: ledger.has_capital_headers(),
            world: Mutex::new(World { ledger, common }),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The ledger as it was left, without doing what is due.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ledger after all that is due.
    pub(crate) fn world_now(&self) -> MutexGuard<'_, World> {
        let mut world = self.world();
        if let Err(error) = world.advance(self.now()) {
            log::error!("the simulated ledger cannot write its record: {error}");
        }
        world
    }

    pub(crate) fn strikes(&self, fault: Fault) -> bool {
        self.world().common.faults.strikes(fault)
    }

    pub(crate) fn delay(&self, kind: Fault) -> Duration {
        self.world().common.faults.delay(kind)
    }

    pub(crate) fn respond(&self, life: u64, ask: &Ask) -> Result<Reply, Reset> {
        let now = self.now();
        let mut world = self.world();
        self.same(life)?;
        let reply = world.respond(ask, now);
        if !world.ledger.is_idle() {
            self.busy.notify_one();
        }
        Ok(reply)
    }

    pub(crate) fn set_frozen(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }

    pub(crate) fn restart(&self) {
        let now = self.now();
        let mut world = self.world_now();
        world.ledger.forget(now);
        // Under the lock, so that nothing of the old life is answered from the new one.
        self.life.send_modify(|life| *life += 1);
    }

    /// Which life the ledger is in. What belongs to an earlier one is not answered.
    pub(crate) fn life(&self) -> u64 {
        *self.life.borrow()
    }

    /// Waits until this life is over.
    pub(crate) async fn end_of(&self, life: u64) -> Reset {
        // The sender is as old as `self`, so that there is always an end to wait for.
        let _ = self.life.subscribe().wait_for(|now| *now != life).await;
        Reset
    }

    /// Goes on when the ledger is not frozen, and still in this life.
    pub(crate) async fn thawed(&self, life: u64) -> Result<(), Reset> {
        let mut frozen = self.frozen.subscribe();
        frozen.wait_for(|frozen| !frozen).await.map_err(|_| Reset)?;
        self.same(life)
    }

    /// Waits by the ledger's clock.
    pub(crate) async fn pause(&self, life: u64, duration: Duration) -> Result<(), Reset> {
        let until = self.now().plus(duration);
        while self.now() < until {
            self.look_again().await;
            self.same(life)?;
        }
        Ok(())
    }

    pub(crate) async fn look_again(&self) {
        sleep(LOOK_AGAIN).await;
    }

    fn same(&self, life: u64) -> Result<(), Reset> {
        if self.life() == life { Ok(()) } else { Err(Reset) }
    }

    /// Does what becomes due though nobody asks. Costs nothing while nothing is under way.
    pub(crate) async fn keep_going(&self) {
        loop {
            self.busy.notified().await;
            while !self.world_now().ledger.is_idle() {
                self.look_again().await;
            }
        }
    }
}

impl World {
    /// Nothing that is done here is seen by anyone before it is on the disk.
    fn advance(&mut self, now: Timestamp) -> io::Result<()> {
        let done = self.ledger.advance(&mut self.common, now);
        self.common.record.sync()?;
        done
    }

    fn respond(&mut self, ask: &Ask, now: Timestamp) -> Reply {
        if self.advance(now).is_err() {
            return self.ledger.broken().into();
        }
        let reply = self.ledger.respond(ask, &mut self.common, now);
        match self.advance(now) {
            Ok(()) => reply,
            Err(_) => self.ledger.broken().into(),
        }
    }
}
