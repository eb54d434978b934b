//! What the service is told: by a file, the environment and the command line, the later the stronger.

mod error;
mod evm;
mod file;
mod layers;
mod print;
mod setting;
mod value;

use std::{
    net::SocketAddr,
    num::NonZero,
    path::{Path, PathBuf},
    time::Duration,
};

use grid_batch_core::{ServiceId, ServiceScopeId};
use grid_batch_http::{HttpOptions, SocketOptions};
use grid_batch_queuer::QueueOptions;
use grid_batch_store::{DatabaseUrl, StoreOptions};
use grid_batch_submitter::{Backoff, SubmitterOptions};

pub use error::{ConfigError, Origin};
pub use evm::{EvmConfig, KeySource};
pub use setting::{Form, SETTINGS, Setting};

use layers::{Given, Layers, of_environment};
use value::{NodeUrl, ServiceUrl};

/// Everything that can be set, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where batches are stored.
    pub database: DatabaseUrl,
    /// Where batches are handed in.
    pub listen: SocketAddr,
    /// What is logged, as `env_logger` reads it.
    pub log: String,
    /// The ledger.
    pub ledger: LedgerConfig,
    /// Where the ledger is an EVM chain: its pools and their gas admins.
    pub evm: EvmConfig,
    /// How the database is used.
    pub store: StoreOptions,
    /// How services are divided among instances.
    pub claims: ClaimsConfig,
    /// How many bytes a request may have.
    pub body_limit: usize,
    /// How batches are taken from the store.
    pub queue: QueueOptions,
    /// How long a batch waits after the ledger did not take it.
    pub delay: Duration,
    /// How batches are sent.
    pub submit: SubmitterOptions,
    /// How batches are followed.
    pub poll: PollConfig,
    layers: Layers,
}

/// Which kind of ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerKind {
    /// Hyperledger Sawtooth.
    Sawtooth,
    /// Scabbard services of Splinter circuits.
    Scabbard,
    /// Pools on an EVM chain.
    Evm,
}

/// The ledger, and how to talk to it.
#[derive(Debug, Clone)]
pub struct LedgerConfig {
    /// Which kind, where that was said.
    pub kind: Option<LedgerKind>,
    /// The addresses of its nodes.
    pub urls: Vec<String>,
    /// Services that are elsewhere.
    pub services: Vec<(ServiceScopeId, String)>,
    /// The file of the key that the service is known by.
    pub key_file: Option<PathBuf>,
    /// How requests are made.
    pub http: HttpOptions,
    /// So many event sockets are held open; none without events.
    pub event_sockets: usize,
    /// How event sockets are held open.
    pub socket: SocketOptions,
    /// The waits before a broken event socket is opened again.
    pub reconnect_backoff: grid_batch_poller::Backoff,
    /// When a batch that no node knows counts as not there.
    pub absent_after: Duration,
    /// When a batch that stays Valid counts as dropped.
    pub dropped_after: Duration,
}

/// How services are divided among instances.
#[derive(Debug, Clone)]
pub struct ClaimsConfig {
    /// The instance's name, where it has one.
    pub name: Option<String>,
    /// An instance that is silent for so long loses services of which nothing is being sent.
    pub expiry_1: Duration,
    /// An instance that is silent for so long loses all of its services.
    pub expiry_2: Duration,
    /// Take no more than a fair part.
    pub share: bool,
}

/// How batches are followed.
#[derive(Debug, Clone)]
pub struct PollConfig {
    /// How often the ledger is asked for a batch, without events.
    pub interval: Duration,
    /// The same, while events come.
    pub interval_with_events: Duration,
    /// The same, for a batch that is stuck.
    pub longest: Duration,
    /// The shortest time between two questions that events lead to.
    pub trigger_gap: Duration,
    /// How many questions are under way at most.
    pub connections: usize,
    /// When to look for evidence about a batch that the ledger took.
    pub quiet_after: Duration,
    /// When evidence of absence counts.
    pub believe_absence_after: Duration,
    /// When a batch of which nothing can be proved is held.
    pub hold_after: Duration,
    /// When a batch that the ledger does not end is held.
    pub give_up_after: Duration,
    /// How often a batch that the ledger loses is tried.
    pub max_attempts: u32,
    /// Services whose batches are sent again where nothing can be proved.
    pub resubmit_undecided: Vec<ServiceId>,
}

impl Config {
    /// The file that is read where none is named, if it is there.
    pub const FILE: &str = "grid-batch.toml";

    /// The variable that names the file.
    pub const FILE_VARIABLE: &str = "GRID_BATCH_CONFIG";

    /// Reads the file, lays the environment over it, and then the flags, which are pairs of a
    /// setting and its text.
    ///
    /// ```
    /// use std::path::Path;
    /// use grid_batch_service::{Config, Setting};
    ///
    /// let variables = [("GRID_BATCH_LISTEN".to_owned(), "127.0.0.1:1".to_owned())];
    /// let flag = (Setting::named("queue.delay").unwrap(), "3s".to_owned());
    /// let config = Config::load(None, variables.into_iter(), vec![flag])?;
    /// assert_eq!(config.listen.port(), 1);
    /// assert_eq!(config.delay.as_secs(), 3);
    /// # Ok::<(), grid_batch_service::ConfigError>(())
    /// ```
    pub fn load(
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
        flags: Vec<(&'static Setting, String)>,
    ) -> Result<Self, ConfigError> {
        let layers = Layers::new()
            .over(file::read(file.unwrap_or(Path::new(Self::FILE)), file.is_some())?)
            .over(of_environment(variables)?)
            .over(flags.into_iter().map(of_flag).collect());
        Self::of(layers)
    }

    /// The configuration that these flags alone make: no file and no environment.
    pub(crate) fn of_flags(flags: Vec<(&'static Setting, String)>) -> Result<Self, ConfigError> {
        Self::of(Layers::new().over(flags.into_iter().map(of_flag).collect()))
    }

    fn of(layers: Layers) -> Result<Self, ConfigError> {
        let config = Self {
            database: layers.read("database")?,
            listen: layers.read("listen")?,
            log: layers.read("log")?,
            ledger: ledger(&layers)?,
            evm: EvmConfig::of(&layers)?,
            store: StoreOptions {
                connections: layers.read::<NonZero<u32>>("store.connections")?.get(),
                lock_timeout: layers.read("store.patience")?,
                ..StoreOptions::default()
            },
            claims: claims(&layers)?,
            body_limit: size(&layers, "intake.body_limit")?,
            queue: QueueOptions {
                round: size(&layers, "queue.round")?,
                poll_interval: layers.read("queue.poll_interval")?,
                hold_limit: layers.read("submit.total_limit")?,
                ..QueueOptions::default()
            },
            delay: layers.read("queue.delay")?,
            submit: submit(&layers)?,
            poll: poll(&layers)?,
            layers,
        };
        config.check()?;
        Ok(config)
    }

    /// From the moment that a batch is marked, the longest until it is certainly not being sent any
    /// more: it may wait for its turn as long as others before it are sent.
    pub fn longest_submission(&self) -> Duration {
        self.submit.total_limit * 2
    }

    /// What goes together.
    fn check(&self) -> Result<(), ConfigError> {
        let layers = &self.layers;
        if !self.listen.ip().is_loopback() {
            return Err(layers.together(
                "listen",
                format!(
                    "{} is not of this machine alone; nobody who hands batches in is asked who they \
                     are, so put a proxy that does in front",
                    self.listen
                ),
            ));
        }
        let ascending = [
            ("ledger.connect_limit", "ledger.request_limit"),
            ("ledger.request_limit", "submit.sending_limit"),
            ("submit.sending_limit", "submit.total_limit"),
            ("submit.sending_limit", "poll.believe_absence_after"),
            ("ledger.socket_silence", "ledger.absent_after"),
            ("ledger.socket_silence", "ledger.dropped_after"),
            ("poll.interval", "poll.longest"),
        ];
        for (shorter, longer) in ascending {
            let [short, long] =
                [layers.read::<Duration>(shorter)?, layers.read::<Duration>(longer)?];
            if short >= long {
                let rule =
                    format!("{shorter} is {short:?}; it must be less than {longer}, {long:?}");
                let first =
                    if layers.given(shorter).origin == Origin::Default { longer } else { shorter };
                return Err(layers.together(first, rule));
            }
        }
        let claims = &self.claims;
        let least = claims.expiry_1 + self.longest_submission();
        if claims.expiry_2 < least {
            return Err(layers.together(
                "claims.expiry_2",
                format!(
                    "claims.expiry_2 is {:?}; it must be at least claims.expiry_1 and twice \
                     submit.total_limit, together {least:?}, or a service could be taken over while \
                     its batch is being sent",
                    claims.expiry_2,
                ),
            ));
        }
        self.evm.check(layers)?;
        match self.ledger.kind {
            Some(LedgerKind::Sawtooth) if !self.ledger.services.is_empty() => Err(layers.together(
                "ledger.services",
                "ledger.services is for scabbard; a sawtooth ledger has no services".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

fn of_flag((setting, text): (&'static Setting, String)) -> Given {
    Given { setting, origin: Origin::Flag(setting.flag()), text }
}

fn ledger(layers: &Layers) -> Result<LedgerConfig, ConfigError> {
    let key_file: String = layers.read("ledger.key_file")?;
    let events: bool = layers.read("ledger.events")?;
    Ok(LedgerConfig {
        kind: layers.read("ledger.kind")?,
        urls: layers.read::<Vec<NodeUrl>>("ledger.urls")?.into_iter().map(|url| url.0).collect(),
        services: layers
            .read::<Vec<ServiceUrl>>("ledger.services")?
            .into_iter()
            .map(|ServiceUrl(service, url)| (service, url))
            .collect(),
        key_file: (!key_file.is_empty()).then(|| key_file.into()),
        http: HttpOptions {
            connect_limit: layers.read("ledger.connect_limit")?,
            request_limit: layers.read("ledger.request_limit")?,
            ..HttpOptions::default()
        },
        event_sockets: if events { size(layers, "ledger.event_sockets")? } else { 0 },
        socket: SocketOptions {
            silence_limit: layers.read("ledger.socket_silence")?,
            ..SocketOptions::default()
        },
        reconnect_backoff: grid_batch_poller::Backoff {
            first: layers.read("ledger.reconnect_first")?,
            longest: layers.read("ledger.reconnect_longest")?,
        },
        absent_after: layers.read("ledger.absent_after")?,
        dropped_after: layers.read("ledger.dropped_after")?,
    })
}

fn claims(layers: &Layers) -> Result<ClaimsConfig, ConfigError> {
    let name: String = layers.read("claims.name")?;
    Ok(ClaimsConfig {
        name: (!name.is_empty()).then_some(name),
        expiry_1: layers.read("claims.expiry_1")?,
        expiry_2: layers.read("claims.expiry_2")?,
        share: layers.read("claims.share")?,
    })
}

fn submit(layers: &Layers) -> Result<SubmitterOptions, ConfigError> {
    Ok(SubmitterOptions {
        concurrency: layers.read::<NonZero<u32>>("submit.concurrency")?.get(),
        sending_limit: layers.read("submit.sending_limit")?,
        total_limit: layers.read("submit.total_limit")?,
        drain_limit: layers.read("submit.drain_limit")?,
        busy_attempts: layers.read::<NonZero<u16>>("submit.busy_attempts")?.get(),
        not_sent_attempts: layers.read::<NonZero<u16>>("submit.not_sent_attempts")?.get(),
        retry_backoff: Backoff {
            first: layers.read("submit.retry_first")?,
            longest: layers.read("submit.retry_longest")?,
        },
        ..SubmitterOptions::default()
    })
}

fn poll(layers: &Layers) -> Result<PollConfig, ConfigError> {
    Ok(PollConfig {
        interval: layers.read("poll.interval")?,
        interval_with_events: layers.read("poll.interval_with_events")?,
        longest: layers.read("poll.longest")?,
        trigger_gap: layers.read("poll.trigger_gap")?,
        connections: size(layers, "poll.connections")?,
        quiet_after: layers.read("poll.quiet_after")?,
        believe_absence_after: layers.read("poll.believe_absence_after")?,
        hold_after: layers.read("poll.hold_after")?,
        give_up_after: layers.read("poll.give_up_after")?,
        max_attempts: layers.read::<NonZero<u32>>("poll.max_attempts")?.get(),
        resubmit_undecided: layers.read("poll.resubmit_undecided")?,
    })
}

fn size(layers: &Layers, name: &str) -> Result<usize, ConfigError> {
    layers.read::<NonZero<usize>>(name).map(NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_file(text: &str) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, text).unwrap();
        Config::load(Some(&file), std::iter::empty(), Vec::new())
            .map_err(|error| error.to_string().replace(&format!("{}/", dir.path().display()), ""))
    }

    fn of_variable(name: &str, text: &str) -> Result<Config, String> {
        let variables = [(name.to_owned(), text.to_owned())];
        Config::load(None, variables.into_iter(), Vec::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_go_together() {
        let config = Config::of(Layers::new()).unwrap();
        assert_eq!(config.submit, SubmitterOptions::default());
        assert_eq!(config.ledger.kind, None);
        assert_eq!(config.ledger.event_sockets, 100);
    }

    #[test]
    fn every_setting_can_be_given_in_every_way() {
        for setting in SETTINGS {
            let (text, written) = match (setting.name, setting.form) {
                ("ledger.kind", _) => ("scabbard", "\"scabbard\""),
                ("ledger.urls", _) => ("http://a,http://b", "[\"http://a\", \"http://b\"]"),
                ("ledger.services", _) => ("a::b=http://c", "[\"a::b=http://c\"]"),
                ("evm.pools" | "evm.pool_maximum_gas_price", _) => ("", "[]"),
                ("evm.gas_admins", _) => ("a=b", "[\"a=b\"]"),
                (_, Form::List) => ("a::b", "[\"a::b\"]"),
                (_, Form::Number | Form::Bool) => (setting.default, setting.default),
                _ => (setting.default, &*format!("{:?}", setting.default).leak()),
            };
            let file = match setting.name.split_once('.') {
                Some((section, key)) => format!("[{section}]\n{key} = {written}\n"),
                None => format!("{} = {written}\n", setting.name),
            };
            let by_file = of_file(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(by_file.layers.given(setting.name).text, text);
            of_variable(&setting.variable(), text).unwrap();
            let flags = vec![(setting, text.to_owned())];
            let by_flag = Config::load(None, std::iter::empty(), flags).unwrap();
            assert_eq!(by_flag.layers.given(setting.name).origin, Origin::Flag(setting.flag()));
        }
    }

    #[test]
    fn a_flag_is_stronger_than_a_variable_and_that_is_stronger_than_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, "[queue]\nround = 1\ndelay = \"1s\"\npoll_interval = \"1s\"")
            .unwrap();
        let variable = |name: &str| (format!("GRID_BATCH_QUEUE_{name}"), "2s".to_owned());
        let variables = [variable("DELAY"), variable("POLL_INTERVAL")];
        let flags = vec![(Setting::named("queue.delay").unwrap(), "3s".to_owned())];
        let config = Config::load(Some(&file), variables.into_iter(), flags).unwrap();
        assert_eq!(config.queue.round, 1);
        assert_eq!(config.queue.poll_interval.as_secs(), 2);
        assert_eq!(config.delay.as_secs(), 3);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let cases = [
            (
                "\n[poll]\nintervall = \"1s\"",
                "line 3 of c.toml: there is no setting poll.intervall; was poll.interval meant?",
            ),
            ("colour = 1", "line 1 of c.toml: there is no setting colour"),
            (
                "[poll]\ninterval = \"soon\"",
                "line 2 of c.toml: poll.interval is \"soon\"; a time is a number and a unit and not \
                 zero, such as \"500ms\", \"2s\" or \"1h\"",
            ),
            ("[poll]\ninterval = \"0s\"", "line 2 of c.toml: poll.interval is \"0s\"; a time is a"),
            (
                "[poll]\ninterval = 5",
                "line 2 of c.toml: poll.interval is 5; it must be a text in quotes",
            ),
            (
                "[queue]\nround = 0",
                "line 2 of c.toml: queue.round is \"0\"; it must be a number from 1 to",
            ),
            ("[queue]\nround = -1", "line 2 of c.toml: queue.round is \"-1\"; it must be a number"),
            (
                "database = 7",
                "line 1 of c.toml: database is not shown; it must be a text in quotes",
            ),
            ("\n\nlisten = ", "line 3 of c.toml: this is no TOML: "),
            (
                "listen = \"0.0.0.0:1\"",
                "line 1 of c.toml: 0.0.0.0:1 is not of this machine alone; ",
            ),
            (
                "[ledger]\nurls = [\n \"ftp://x\"]",
                "line 2 of c.toml: ledger.urls is [\"ftp://x\"]; an address begins with http://",
            ),
            (
                "[submit]\ntotal_limit = \"15s\"",
                "line 2 of c.toml: submit.sending_limit is 15s; it must be less than \
                 submit.total_limit, 15s",
            ),
            (
                "[claims]\nexpiry_2 = \"80s\"",
                "line 2 of c.toml: claims.expiry_2 is 80s; it must be at least claims.expiry_1 and twice \
                 submit.total_limit, together 150s, ",
            ),
            (
                "[evm]\npools = [\"0x1=a\"]",
                "line 2 of c.toml: the pool 0x1 has the gas admin a, of which evm.gas_admins says nothing",
            ),
            (
                "[evm]\ngas_admins = [\"a\"]",
                "line 2 of c.toml: evm.gas_admins is [\"a\"]; each must be two texts with = between them",
            ),
            (
                "[evm]\ngas_admins = [\"a=k\", \"a=l\"]",
                "line 2 of c.toml: the gas admin a stands there twice",
            ),
            (
                "[ledger]\nkind = \"sawtooth\"\nservices = [\"a::b=http://c\"]",
                "line 3 of c.toml: ledger.services is for scabbard; ",
            ),
            ("poll = 3", "line 1 of c.toml: there is no setting poll"),
        ];
        for (text, expected) in cases {
            let error = of_file(text).expect_err(text);
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_key_that_stands_where_its_place_is_asked_for_is_refused_and_not_shown() {
        let key = "5eC2e7".repeat(11)[..64].to_owned();
        for text in [format!("a={key}"), format!("a=0x{key}"), format!("a=env:{key}"), key.clone()]
        {
            let error = of_variable("GRID_BATCH_EVM_GAS_ADMINS", &text).unwrap_err();
            assert!(!error.contains(&key[..8]), "{error}");
        }
    }

    #[test]
    fn the_maximum_gas_price_has_its_short_name_too() {
        let old = ("MAXIMUM_GAS_PRICE".to_owned(), "150".to_owned());
        let own = ("GRID_BATCH_EVM_MAXIMUM_GAS_PRICE".to_owned(), "99".to_owned());
        let price = |variables: Vec<(String, String)>| {
            let config = Config::load(None, variables.into_iter(), Vec::new()).unwrap();
            config.evm.maximum_gas_price
        };
        assert_eq!(price(vec![old.clone()]), "150");
        assert_eq!(price(vec![own, old]), "99");
    }

    #[test]
    fn a_misspelt_variable_is_an_error_and_those_of_others_are_not() {
        let error = of_variable("GRID_BATCH_POLL_INTERVALL", "1s").unwrap_err();
        assert_eq!(
            error,
            "the variable GRID_BATCH_POLL_INTERVALL: there is no setting \
             GRID_BATCH_POLL_INTERVALL; was GRID_BATCH_POLL_INTERVAL meant?"
        );
        for name in ["PATH", "GRID_BATCH_CONFIG", "GRID_BATCH_TEST_ANYTHING"] {
            of_variable(name, "x").unwrap();
        }
    }

    #[test]
    fn a_file_that_was_named_must_be_there() {
        let file = Path::new("/nowhere/c.toml");
        let error = Config::load(Some(file), std::iter::empty(), Vec::new()).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("the configuration /nowhere/c.toml cannot be read: "), "{text}");
    }

    #[test]
    fn passwords_are_in_no_error() {
        for (name, text) in [
            ("GRID_BATCH_DATABASE", "mysql://u:secret@h/d"),
            ("GRID_BATCH_LEDGER_URLS", "ftp://u:secret@h"),
            ("GRID_BATCH_LEDGER_SERVICES", "a::b=ftp://u:secret@h"),
        ] {
            let error = of_variable(name, text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
