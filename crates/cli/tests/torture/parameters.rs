use std::{env, fmt::Debug, str::FromStr, time::Duration};

/// How long and how hard, as the environment says.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    pub time: Duration,
    pub seed: u64,
    pub instances: usize,
    pub services: usize,
}

impl Parameters {
    pub fn of_environment() -> Self {
        Self {
            time: Duration::from_secs(number("SECONDS", || 12)),
            seed: number("SEED", || fastrand::u64(..1_000_000_000)),
            instances: number("INSTANCES", || 3),
            services: number("SERVICES", || 20),
        }
    }
}

fn number<T: FromStr<Err: Debug>>(name: &str, default: impl FnOnce() -> T) -> T {
    let name = format!("GRID_BATCH_TEST_TORTURE_{name}");
    match env::var(&name) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{name} is {text:?}: {error:?}")),
        Err(_) => default(),
    }
}
