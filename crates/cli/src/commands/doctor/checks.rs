//! The checks. A check is skipped if the failure of another one makes it impossible.

use std::time::Duration;

use grid_batch_client::{Client, ClientError, ClientOptions};
use grid_batch_core::queries::ServiceCounts;
use grid_batch_service::{
    AccessInForce, Config, ENOUGH_HTTP_CONNECTIONS, ListenAddress, NodeIdentity, NodeService,
    StartError, ask_for_services, ask_nodes, fitting_http_connections,
};
use grid_batch_store::Store;
use grid_batch_support::{ErrorChain, one_line};

use super::finding::Finding;
use crate::commands::{
    flags::{self, OfDatabase, SettingFlags},
    migrate,
};

const DATABASE: &str = "database";
const LEDGER: &str = "ledger";

pub(super) fn all(settings: &SettingFlags<OfDatabase>) -> Vec<Finding> {
    let config = match settings.load() {
        Ok(config) => config,
        Err(failure) => {
            let advice = "correct it; `grid-batch config init` writes a file to begin with";
            return vec![Finding::problem("configuration", failure.to_string(), advice)];
        }
    };
    let mut findings = vec![configuration(&config)];
    findings.extend(permissions(&config));
    findings.push(access(&config));
    findings.push(limits(&config));
    let (of_database, store) = database(&config);
    findings.extend(of_database);
    if config.ledger.kind.is_some() {
        findings.extend(ledger(&config, store.as_ref()));
    }
    findings.extend(server(&config));
    findings
}

fn configuration(config: &Config) -> Finding {
    match config.ledger.kind {
        Some(_) => Finding::good("configuration", "every setting has a valid value"),
        None => Finding::problem(
            "configuration",
            "ledger.kind is not set",
            format!("set ledger.kind to {}, and ledger.urls to the nodes", flags::ledger_kinds()),
        ),
    }
}

fn permissions(config: &Config) -> Vec<Finding> {
    let check = "permissions";
    let readable = config.readable_secrets();
    if readable.is_empty() {
        return vec![Finding::good(check, "no other user can read a secret or the database file")];
    }
    let finding = |secret: &grid_batch_service::ReadableSecret| {
        let text = secret.to_string();
        let (text, advice) = text.split_once("; ").unwrap_or((&text, ""));
        Finding::warning(check, format!("{}: {text}", secret.name()), advice)
    };
    readable.iter().map(finding).collect()
}

/// Who may submit batches.
fn access(config: &Config) -> Finding {
    let AccessInForce { text, advice } = AccessInForce::of(config);
    let text = format!("access.mode is {text}");
    match advice {
        Some(advice) => Finding::warning("access", text, advice),
        None => Finding::good("access", text),
    }
}

fn limits(config: &Config) -> Finding {
    let check = "limits";
    let advice = "raise it with `ulimit -n`, or with LimitNOFILE in the unit of systemd";
    match fitting_http_connections(config) {
        Ok(fitting) if fitting >= ENOUGH_HTTP_CONNECTIONS => {
            Finding::good(check, "the limit of open files leaves room for enough HTTP connections")
        }
        Ok(fitting) => Finding::warning(
            check,
            format!(
                "the limit of open files leaves room for only {fitting} HTTP connections; there should be \
                 {ENOUGH_HTTP_CONNECTIONS}"
            ),
            advice,
        ),
        Err(error) => Finding::problem(check, error.to_string(), advice),
    }
}

/// The database with what can only be checked with it, and the database if it can be used.
fn database(config: &Config) -> (Vec<Finding>, Option<Store>) {
    let (finding, store) = match usable_database(config) {
        Ok(opened) => opened,
        Err(finding) => return (vec![finding], None),
    };
    let mut findings = vec![finding];
    findings.extend(durability(&store));
    findings.extend(space(&store));
    findings.extend(settings_of_instances(config, &store));
    findings.push(clock(&store));
    findings.extend(store.service_counts().iter().flat_map(waits));
    (findings, Some(store))
}

fn usable_database(config: &Config) -> Result<(Finding, Store), Finding> {
    let name = &config.general.database;
    let rights = match name.file() {
        Some(_) => "check that this user can read and write the file and its folder",
        None => {
            "check that the database server runs, and check its address, the user and the password"
        }
    };
    let failed = |text: String| Finding::problem(DATABASE, text, rights);
    if name.file().is_some_and(|file| !file.exists()) {
        return Err(new_file(config));
    }
    let version = migrate::version(config).map_err(|failure| failed(failure.to_string()))?;
    let text = format!("{name}: {}", migrate::describe(&version));
    if version.found.as_ref().is_some_and(|found| *found > version.known) {
        return Err(Finding::problem(
            DATABASE,
            text,
            "use the release of grid-batch that used it last, or a later one",
        ));
    }
    if !version.is_current() {
        return Err(Finding::warning(
            DATABASE,
            text,
            "a server does this by itself when it starts",
        ));
    }
    let store = Store::open_to_read(name, config.store_options());
    let store = store.map_err(|error| failed(one_line(ErrorChain(&error).to_string())))?;
    Ok((Finding::good(DATABASE, text), store))
}

/// A database file that does not exist yet.
fn new_file(config: &Config) -> Finding {
    let folder = config.general.database.file().and_then(|file| file.parent());
    let text = format!("{} does not exist", config.general.database);
    match folder.filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => {
            let advice = format!("create the folder {}", folder.display());
            Finding::problem(DATABASE, text, advice)
        }
        None => Finding::warning(DATABASE, text, "a server creates it when it starts"),
    }
}

fn durability(store: &Store) -> Vec<Finding> {
    let warnings = store.durability_warnings().unwrap_or_default();
    let advice = "see \"A database that goes back\" in docs/operations.md";
    warnings.into_iter().map(|text| Finding::warning(DATABASE, text, advice)).collect()
}

/// The space of the file system of a database file.
fn space(store: &Store) -> Option<Finding> {
    let space = store.probe().check().ok().flatten()?;
    let text = format!("its file system has {space}");
    let advice = "enlarge the file system, or remove old batches (retention.after)";
    Some(if space.is_used_up() {
        Finding::problem(DATABASE, text, advice)
    } else if space.is_low() {
        Finding::warning(DATABASE, text, advice)
    } else {
        Finding::good(DATABASE, text)
    })
}

/// Settings that differ from those of the instances that run.
fn settings_of_instances(config: &Config, store: &Store) -> Vec<Finding> {
    let recorded = store.settings_of_instances().unwrap_or_default();
    let advice = "give it the same value on all instances, and restart those that change";
    let differences = config.equal_settings().differences(&recorded).into_iter();
    differences.map(|text| Finding::warning("settings", text, advice)).collect()
}

fn clock(store: &Store) -> Finding {
    let skew = store.clock().skew();
    if skew.is_tolerated() {
        Finding::good("clock", "it agrees with the clock of the database")
    } else {
        Finding::warning(
            "clock",
            format!("the clock of this machine is {skew}"),
            "synchronize both with a time service; shown times are wrong, but batches are not affected",
        )
    }
}

/// The services that wait for an operator or a retry, and what to do.
fn waits(counts: &ServiceCounts) -> Vec<Finding> {
    let paused = if counts.all_paused { counts.open } else { counts.paused + counts.states_differ };
    [
        (
            counts.held,
            "services with a batch that is held for an operator",
            "`grid-batch held` lists the batches, and what can be done about each",
        ),
        (
            counts.halted,
            "services that an invalid batch stops",
            "`grid-batch halts` lists the batches; `grid-batch continue BATCH --reason TEXT` lets the others continue, \
             `grid-batch end-following BATCH --reason TEXT` ends them",
        ),
        (
            paused,
            "paused services",
            "`grid-batch explain SERVICE` says why; `grid-batch resume SERVICE --reason TEXT`, or --all in place of \
             SERVICE, ends it",
        ),
        (
            counts.failing,
            "services whose last attempt to send a batch failed",
            "they are tried again by themselves; `grid-batch explain SERVICE` has the error",
        ),
    ]
    .into_iter()
    .filter(|(services, ..)| *services > 0)
    .map(|(services, what, advice)| {
        Finding::warning("waits", format!("{what}: {services}"), advice)
    })
    .collect()
}

fn ledger(config: &Config, store: Option<&Store>) -> Vec<Finding> {
    let nodes = match ask_nodes(config) {
        Ok(nodes) => nodes,
        Err(error) => return vec![wrong_settings(&error)],
    };
    let mut findings: Vec<_> = nodes.iter().map(node).collect();
    // Nodes that do not answer are reported already.
    match ask_for_services(config) {
        Ok(services) => findings.extend(services.iter().map(service)),
        Err(error) => findings.push(wrong_settings(&error)),
    }
    findings.extend(config.missing_peers().map(|missing| {
        let advice =
            "list the other nodes of its circuit in services.*.peers; see docs/guides/scabbard.md";
        Finding::warning(LEDGER, missing, advice)
    }));
    let recorded = store.and_then(|store| store.ledger().ok().flatten());
    for NodeIdentity { url, identity } in &nodes {
        if let (Some(recorded), Ok(actual)) = (&recorded, identity)
            && !recorded.identity.agrees_with(actual)
        {
            findings.push(Finding::problem(
                LEDGER,
                format!("{url} belongs to another ledger than the database"),
                "correct ledger.urls or the database; `grid-batch ledger show` shows both",
            ));
        }
    }
    findings
}

fn node(NodeIdentity { url, identity }: &NodeIdentity) -> Finding {
    match identity {
        Ok(_) => Finding::good(LEDGER, format!("{url} answers")),
        Err(error) => Finding::problem(
            LEDGER,
            format!("{url}: {error}"),
            "check that the node runs, and check its address in ledger.urls",
        ),
    }
}

fn wrong_settings(error: &StartError) -> Finding {
    let text = one_line(ErrorChain(error).to_string());
    Finding::problem(LEDGER, text, "correct the settings of the ledger")
}

/// Whether a node has a service that the settings name.
fn service(NodeService { setting, service, url, answer }: &NodeService) -> Finding {
    match answer {
        Ok(true) => Finding::good(LEDGER, format!("{url} has the service {service} of {setting}")),
        Ok(false) => Finding::problem(
            LEDGER,
            format!("{url} does not have the service {service} of {setting}"),
            "correct the id: each node of a circuit has its own service with its own id, and answers only for \
             that one; `splinter circuit show` lists them",
        ),
        Err(error) => Finding::problem(
            LEDGER,
            format!(
                "{url} does not report whether it has the service {service} of {setting}: {error}"
            ),
            "check that the node runs, and that it accepts the key of ledger.key_file",
        ),
    }
}

/// A server that runs at the address of the configuration. Addresses with TLS and Unix sockets are not asked.
fn server(config: &Config) -> Option<Finding> {
    let address = config.general.listen.iter().find_map(|address| match address {
        ListenAddress::Tcp(address) if address.port() != 0 => Some(*address),
        _ => None,
    })?;
    let url = format!("http://{address}");
    let options = ClientOptions {
        url: url.clone(),
        timeout: Duration::from_secs(5),
        ..ClientOptions::default()
    };
    let answer = Client::new(options).and_then(|client| client.health("/health/ready"));
    let check = "server";
    Some(match answer {
        Ok(report) if report["status"] != "unhealthy" => {
            Finding::good(check, format!("a server is ready at {url}"))
        }
        Ok(_) => Finding::warning(
            check,
            format!("the server at {url} is not ready"),
            "`grid-batch health` shows which part does not work",
        ),
        Err(ClientError::Unreachable { .. }) => {
            Finding::good(check, format!("no server runs at {url}; `grid-batch serve` starts one"))
        }
        Err(ClientError::Refused { .. } | ClientError::Busy { .. }) => {
            Finding::good(check, format!("a server runs at {url}; its health needs a token"))
        }
        Err(error) => {
            let text = one_line(ErrorChain(&error).to_string());
            let advice = "another program uses the address; stop it, or change `listen`";
            Finding::problem(check, text, advice)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_found_with_what_to_do() {
        assert_eq!(waits(&ServiceCounts::default()), []);
        let counts = ServiceCounts { open: 9, held: 1, failing: 2, ..ServiceCounts::default() };
        let of = |counts| waits(&counts).into_iter().map(|it| it.text).collect::<Vec<_>>();
        let expected = [
            "services with a batch that is held for an operator: 1",
            "services whose last attempt to send a batch failed: 2",
        ];
        assert_eq!(of(counts), expected);
        let paused = ServiceCounts { open: 9, all_paused: true, ..ServiceCounts::default() };
        assert_eq!(of(paused), ["paused services: 9"]);
    }
}
