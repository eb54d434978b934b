use std::{thread, time::Duration};

use grid_batch_core::Timestamp;
use grid_batch_core::claims::InstanceId;
use log::info;

/// An instance with the same name, whose lease has not expired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameInUse {
    /// The name.
    pub name: String,
    /// The other instance.
    pub holder: InstanceId,
    /// When its lease expires.
    pub until: Timestamp,
}

/// Registers this process as an instance on the database. `in_use` returns the holder of the name if the error of
/// `register` says that another instance has it.
///
/// In this case it waits until the idle expiry of the other instance, so that a crashed server can be restarted at
/// once. If the other instance renews its lease meanwhile, it returns an error.
pub fn wait_for_name<T, E>(
    register: impl Fn() -> Result<T, E>,
    in_use: impl Fn(&E) -> Option<NameInUse>,
) -> Result<T, E> {
    const RETRY_INTERVAL: Duration = Duration::from_millis(100);
    let mut first_lease: Option<NameInUse> = None;
    loop {
        let error = match register() {
            Err(error) => error,
            registered => return registered,
        };
        let Some(lease) = in_use(&error) else { return Err(error) };
        match &first_lease {
            Some(first) if *first != lease => return Err(error),
            Some(_) => {}
            None => {
                info!(name = lease.name.as_str(), instance:% = lease.holder;
                    "an instance with this name has a lease; waiting for its expiry or renewal");
                first_lease = Some(lease);
            }
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn lease(until: i64) -> NameInUse {
        NameInUse {
            name: "one".to_owned(),
            holder: InstanceId::new("1"),
            until: Timestamp::from_micros(until),
        }
    }

    #[test]
    fn lease_that_expires_is_waited_for() {
        let tries = Cell::new(0);
        let register = || {
            tries.set(tries.get() + 1);
            if tries.get() < 3 { Err(lease(7)) } else { Ok(()) }
        };
        assert_eq!(wait_for_name(register, |lease| Some(lease.clone())), Ok(()));
        assert_eq!(tries.get(), 3);
    }

    #[test]
    fn lease_that_is_renewed_is_an_error() {
        let tries = Cell::new(0);
        let register = || {
            tries.set(tries.get() + 1);
            Err::<(), _>(lease(tries.get()))
        };
        assert_eq!(wait_for_name(register, |lease| Some(lease.clone())), Err(lease(2)));
        assert_eq!(wait_for_name(register, |_| None), Err(lease(3)), "another error");
    }
}
