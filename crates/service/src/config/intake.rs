use std::num::NonZero;

use grid_batch_api::{Rate, RateLimits, SignerPattern};
use grid_batch_settings::{ConfigError, Setting, SettingValues, settings};
use grid_batch_store::IntakeLimits;
use grid_batch_support::ServicePattern;

use super::Config;

settings! {
    /// Which batches are accepted.
    #[derive(Debug, Clone)]
    pub struct IntakeConfig in "intake." {
        /// Batches that a token, or an address without one, may submit in a second, and how many at once, such as
        /// 100/500; more are refused with 429. Each instance counts for itself. Empty: no limit.
        ///
        /// Set it where one client must not use up what others need.
        pub rate_of_client: Option<Rate> = text("") => rate,
        /// The same for each service, from all clients together.
        ///
        /// Set it to the number of batches of a service that the ledger applies in a second.
        pub rate_of_service: Option<Rate> = text("") => rate,
        /// Maximum size of a request body in bytes.
        ///
        /// Raise it if clients have larger batches; each request in progress may need as much memory.
        pub body_limit: usize = number("10485760").equal().between(1_024, 1 << 30),
        /// Services whose batches are accepted, as patterns in which * stands for any characters, such as
        /// abcde-01234::gs*; empty for all. Batches that are stored already are submitted all the same (sawtooth,
        /// scabbard).
        ///
        /// List the services of the ledger, so that made-up ones are refused.
        pub services: Vec<ServicePattern> = list("").equal() => SettingValues::get_list,
        /// Public keys of the signers whose batches are accepted, as 66 hex digits or as patterns in which * stands for
        /// any digits; empty for all. The signer of the batch counts, not those of its transactions (sawtooth,
        /// scabbard).
        ///
        /// List the keys that may sign batches.
        pub signers: Vec<SignerPattern> = list("").equal() => SettingValues::get_list,
        /// Maximum number of open batches of a service, or of open withdrawals of a gas admin; more are refused with
        /// 429 until some have ended. A hundredth is the number of services that one signer, and a tenth that all
        /// signers, may have opened and in which no batch has ended yet.
        ///
        /// Raise it if clients send more batches while the ledger is down than it allows, or use more services for the
        /// first time at once.
        pub open_batches: u64 = number("100000").equal().between(1, u64::MAX),
        /// Maximum number of open batches that a token, or a key of access.keys, has submitted while this was set; more
        /// are refused with 429 until some have ended. Empty: no limit.
        ///
        /// Set it where one client must not fill the queues of others.
        pub open_batches_of_client: Option<NonZero<u64>> = text("").equal(),
    }
}

fn rate(values: &SettingValues, setting: &Setting) -> Result<Option<Rate>, ConfigError> {
    values.get_with(setting, |text| match text {
        "" => Ok(None),
        text => {
            text.parse().map(Some).map_err(|error| format!("it must be empty, or a rate: {error}"))
        }
    })
}

impl Config {
    /// How many batches clients and services may get stored in a second.
    pub(crate) fn rate_limits(&self) -> RateLimits {
        RateLimits {
            client: self.intake.rate_of_client,
            service: self.intake.rate_of_service,
            declared_addresses: self.uses_declared_access(),
        }
    }

    pub(super) fn intake_limits(&self) -> IntakeLimits {
        let limits = IntakeLimits::of_queue(self.intake.open_batches);
        let or = |given: Option<NonZero<u64>>, derived| given.map_or(derived, NonZero::get);
        let (per_signer, all) = (self.testing.new_services_per_signer, self.testing.new_services);
        IntakeLimits {
            open_batches_of_client: or(self.intake.open_batches_of_client, u64::MAX),
            new_services_per_signer: or(per_signer, limits.new_services_per_signer),
            new_services: or(all, limits.new_services),
            ..limits
        }
    }
}
