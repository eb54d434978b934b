use std::{env, ffi::OsString, fmt::Debug, str::FromStr, time::Duration};

/// The program of an earlier release from which the instances are upgraded, if any.
pub fn upgraded_program() -> Option<OsString> {
    env::var_os("GRID_BATCH_TEST_CHAOS_UPGRADE_FROM")
}

/// The parameters of a run, from the environment.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    pub run_time: Duration,
    pub seed: u64,
    pub instances: usize,
    pub services: usize,
}

impl Parameters {
    pub fn from_env() -> Self {
        Self {
            run_time: Duration::from_secs(number("SECONDS", || 12)),
            seed: number("SEED", || fastrand::u64(..1_000_000_000)),
            instances: number("INSTANCES", || 3),
            services: number("SERVICES", || 20),
        }
    }
}

fn number<T: FromStr<Err: Debug>>(name: &str, default: impl FnOnce() -> T) -> T {
    let name = format!("GRID_BATCH_TEST_CHAOS_{name}");
    match env::var(&name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|error| panic!("{name} is {text:?}, which is not a number: {error:?}")),
        Err(_) => default(),
    }
}
