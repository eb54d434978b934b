//! Groups of changes of several services. Each group is one commit, unless rows of a service are locked. The group is
//! then split, so that one locked row does not stop other services.

use std::{collections::BTreeSet, time::Duration};

use grid_batch_core::ServiceId;

use super::{
    Connection, LockedRow, Store, StoreError,
    find_locked::{find_locked, find_stuck},
};

/// How long a group or a request waits for a lock. The store's own transactions hold their locks only until their
/// commit.
pub(crate) const LOCK_LIMIT: Duration = Duration::from_millis(500);
/// How long the parts of a group that has met a locked row wait.
pub(crate) const SPLIT_LOCK_LIMIT: Duration = Duration::from_millis(100);

/// An item of a group.
pub(crate) trait GroupItem: Clone {
    fn services(&self) -> impl Iterator<Item = &ServiceId>;
}

/// The result of a group.
pub(crate) struct GroupResult<O> {
    /// The outcome of each item; `None` for one that was not committed.
    pub(crate) outcomes: Vec<Option<O>>,
    /// Why items were not committed: [`StoreError::ServicesLocked`] if rows are locked.
    pub(crate) error: Option<StoreError>,
}

impl<O> GroupResult<O> {
    /// The outcomes if all items were committed.
    pub(crate) fn complete(self) -> Result<Vec<O>, StoreError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.outcomes.into_iter().flatten().collect()),
        }
    }

    /// The outcomes, of which those of locked services are left for a later try.
    pub(crate) fn without_locked(self) -> Result<Vec<Option<O>>, StoreError> {
        match self.error {
            None | Some(StoreError::ServicesLocked { .. }) => Ok(self.outcomes),
            Some(error) => Err(error),
        }
    }
}

/// Does `work` on all items in one commit, if no row of their services is locked for long. Otherwise uses several
/// commits, without the items of locked services.
pub(crate) fn commit_group<T: GroupItem, O>(
    store: &Store,
    items: &[T],
    work: impl Fn(&mut Connection, &[T]) -> Result<Vec<O>, StoreError>,
) -> GroupResult<O> {
    let outcomes = items.iter().map(|_| None).collect();
    let mut group = Group { store, items, work, outcomes, locked: BTreeSet::new() };
    let result = group.commit();
    let Group { outcomes, locked, .. } = group;
    let error = match result {
        Err(error) => Some(error),
        Ok(()) if locked.is_empty() => None,
        Ok(()) => Some(StoreError::ServicesLocked { services: locked.into_iter().collect() }),
    };
    GroupResult { outcomes, error }
}

struct Group<'g, T, O, W> {
    store: &'g Store,
    items: &'g [T],
    work: W,
    outcomes: Vec<Option<O>>,
    /// The services whose items were left out.
    locked: BTreeSet<ServiceId>,
}

/// Positions of items.
type Part = Vec<usize>;

impl<T: GroupItem, O, W> Group<'_, T, O, W>
where
    W: Fn(&mut Connection, &[T]) -> Result<Vec<O>, StoreError>,
{
    fn commit(&mut self) -> Result<(), StoreError> {
        let is_locked = |item: &T| item.services().any(|id| self.store.locked.contains(id));
        let (locked, free): (Part, Part) =
            (0..self.items.len()).partition(|at| is_locked(&self.items[*at]));
        match self.commit_part(&free, LOCK_LIMIT) {
            Err(StoreError::Locked { .. }) if self.store.dialect().locks_rows() => {
                self.commit_unlocked(free)?;
            }
            result => result?,
        }
        self.commit_unlocked(locked)
    }

    /// Commits the items of services that are not locked now, and then those of the others, which may only be busy.
    fn commit_unlocked(&mut self, part: Part) -> Result<(), StoreError> {
        if part.is_empty() {
            return Ok(());
        }
        let services = self.services(&part);
        let mut connection = self.store.pools.write()?;
        let committed = connection.transaction_with_lock_limit(SPLIT_LOCK_LIMIT, |connection| {
            let locked = find_locked(connection, &services)?;
            let is_free = |at: &usize| self.items[*at].services().all(|id| !locked.contains(id));
            let free: Part = part.iter().copied().filter(is_free).collect();
            let outcomes = self.work_on(connection, &free)?;
            Ok((locked, free, outcomes))
        });
        drop(connection);
        match committed {
            Ok((locked, free, outcomes)) => {
                self.keep(&free, outcomes);
                self.store.locked.found_free(services.difference(&locked));
                let left = part.into_iter().filter(|at| !free.contains(at)).collect();
                self.commit_busy(left, &locked)
            }
            Err(StoreError::Locked { .. }) => self.split(part),
            Err(error) => Err(error),
        }
    }

    /// Commits the items of services that look locked, if a short wait shows that they were only busy. The store's own
    /// transactions lock a busy service for most of the time.
    fn commit_busy(&mut self, left: Part, locked: &BTreeSet<ServiceId>) -> Result<(), StoreError> {
        let stuck = find_stuck(self.store, locked)?;
        let is_busy = |at: &usize| self.items[*at].services().all(|id| !stuck.contains(id));
        let busy: Part = left.into_iter().filter(is_busy).collect();
        self.locked.extend(stuck);
        match self.commit_part(&busy, LOCK_LIMIT) {
            Err(StoreError::Locked { .. }) => self.split(busy),
            Ok(()) => {
                self.store.locked.found_free(&self.services(&busy));
                Ok(())
            }
            result => result,
        }
    }

    /// Finds the services with other locked rows by bisection. The items of one service stay together and in order.
    fn split(&mut self, part: Part) -> Result<(), StoreError> {
        let firsts: BTreeSet<&ServiceId> = part.iter().filter_map(|at| self.first(*at)).collect();
        let Some(middle) = firsts.iter().nth(firsts.len() / 2).filter(|_| firsts.len() > 1) else {
            self.leave_out(self.services(&part), LockedRow::Other);
            return Ok(());
        };
        let is_before = |at: &usize| self.first(*at) < Some(middle);
        let (before, after): (Part, Part) = part.iter().partition(|at| is_before(at));
        for half in [before, after] {
            match self.commit_part(&half, SPLIT_LOCK_LIMIT) {
                Ok(()) => self.store.locked.found_free(&self.services(&half)),
                Err(StoreError::Locked { .. }) => self.split(half)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn commit_part(&mut self, part: &Part, lock_limit: Duration) -> Result<(), StoreError> {
        if part.is_empty() {
            return Ok(());
        }
        let mut connection = self.store.pools.write()?;
        let outcomes = connection
            .transaction_with_lock_limit(lock_limit, |connection| self.work_on(connection, part))?;
        drop(connection);
        self.keep(part, outcomes);
        Ok(())
    }

    fn work_on(&self, connection: &mut Connection, part: &Part) -> Result<Vec<O>, StoreError> {
        match part.len() {
            0 => Ok(Vec::new()),
            all if all == self.items.len() => (self.work)(connection, self.items),
            _ => {
                let items: Vec<T> = part.iter().map(|at| self.items[*at].clone()).collect();
                (self.work)(connection, &items)
            }
        }
    }

    /// Keeps the outcomes of items that were committed.
    fn keep(&mut self, part: &Part, outcomes: Vec<O>) {
        self.store.scheduler.events().committed();
        for (at, outcome) in part.iter().zip(outcomes) {
            self.outcomes[*at] = Some(outcome);
        }
    }

    fn leave_out(&mut self, services: BTreeSet<ServiceId>, row: LockedRow) {
        self.store.locked.found_locked(services.iter().cloned(), row, self.store.clock());
        self.locked.extend(services);
    }

    fn first(&self, at: usize) -> Option<&ServiceId> {
        self.items[at].services().next()
    }

    fn services(&self, part: &Part) -> BTreeSet<ServiceId> {
        part.iter().flat_map(|at| self.items[*at].services()).cloned().collect()
    }
}
