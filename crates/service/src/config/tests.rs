use grid_batch_api::{AccessMode, ListenAddress};
use grid_batch_core::PeerService;
use grid_batch_settings::{Form, GivenValue, Origin, Setting};
use grid_batch_submitter::SubmitterOptions;

use super::*;

fn load_file(text: &str) -> Result<Config, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(&file, text).unwrap();
    Config::load(Some(&file), std::iter::empty(), Vec::new())
        .map_err(|error| error.to_string().replace(&format!("{}/", dir.path().display()), ""))
}

fn load_variable(name: &str, text: &str) -> Result<Config, String> {
    let variables = [(name.to_owned(), text.to_owned())];
    Config::load(None, variables.into_iter(), Vec::new()).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_valid() {
    let config = Config::from_flags(Vec::new()).unwrap();
    assert_eq!(config.submitter_options(), SubmitterOptions::default());
    assert_eq!(config.times().full_expiry.as_secs(), 180);
    assert_eq!(config.times().accept_absence_after.as_secs(), 30);
    assert_eq!(config.http_options().connect_timeout.as_secs(), 5);
    assert_eq!(config.intake_limits().new_services_per_signer, 1_000);
    assert_eq!(config.intake_limits().new_services, 10_000);
    assert_eq!(config.ledger.kind, None);
    assert_eq!(config.ledger.event_sockets, 100);
}

#[test]
fn every_setting_can_be_given_in_every_source() {
    for setting in SETTINGS.iter().filter(|setting| !setting.is_for_tests()) {
        let (text, written) = match (setting.name, setting.form) {
            ("ledger.kind", _) => ("scabbard", "\"scabbard\""),
            ("ledger.urls", _) => ("http://a,http://b", "[\"http://a\", \"http://b\"]"),
            ("services.*.node", _) => ("http://c", "\"http://c\""),
            ("services.*.peers", _) => ("d@http://c", "[\"d@http://c\"]"),
            ("services.*.strategy", _) => ("serial", "\"serial\""),
            ("services.*.after_invalid", _) => ("halt", "\"halt\""),
            ("services.*.unknown_history", _) => ("send", "\"send\""),
            ("pools.*.maximum_payment" | "pools.*.maximum_payments_per_day", _) => ("1", "\"1\""),
            ("pools.*.beneficiaries", _) => ("0x1", "[\"0x1\"]"),
            ("gas_admins.*.may_send", _) => ("*", "[\"*\"]"),
            ("gas_admins.*.key", _) => ("b", "\"b\""),
            ("gas_admins.*.password" | "pools.*.gas_admin", _) => continue,
            ("http.allowed_origins", _) => ("https://a", "[\"https://a\"]"),
            ("intake.signers", _) => ("02*", "[\"02*\"]"),
            ("requests.*.options", _) => ("header:a: b", "[\"header:a: b\"]"),
            ("access.keys", _) => ("", "[]"),
            ("listen", _) => ("127.0.0.1:1,unix:/s", "[\"127.0.0.1:1\", \"unix:/s\"]"),
            ("http.trusted_proxies", _) => ("10.0.0.0/8,unix", "[\"10.0.0.0/8\", \"unix\"]"),
            (_, Form::List) => ("a::b", "[\"a::b\"]"),
            (_, Form::Number | Form::Bool) => (setting.default, setting.default),
            _ => (setting.default, &*format!("{:?}", setting.default).leak()),
        };
        let (section, key) = setting.section_and_key();
        let (section, list) = match section.strip_suffix(".*") {
            Some("requests") => ("[requests.nodes]\n".to_owned(), format!("nodes={text}")),
            Some(section) => (format!("[{section}.\"a::b\"]\n"), format!("a::b={text}")),
            None if section.is_empty() => (String::new(), text.to_owned()),
            None => (format!("[{section}]\n"), text.to_owned()),
        };
        let file = format!("{section}{key} = {written}\n");
        let by_file = load_file(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let given = |config: &Config| GivenValue::clone(config.settings.all_of(setting)[0]);
        assert_eq!(given(&by_file).text, text);
        load_variable(&setting.variable(), &list).unwrap();
        let flags = vec![(setting.name.to_owned(), list)];
        let by_flag = Config::load(None, std::iter::empty(), flags).unwrap();
        assert_eq!(given(&by_flag).text, text);
        assert_eq!(given(&by_flag).origin, Origin::Flag(setting.flag()));
    }
}

#[test]
fn flags_override_variables_and_variables_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    std::fs::write(
        &file,
        "[poll]\ninterval = \"1s\"\nhold_after = \"1s\"\ngive_up_after = \"1s\"\n\
         [services.\"a\"]\nstrategy = \"serial\"\n[services.\"b\"]\nstrategy = \"serial\"\nafter_invalid = \"halt\"",
    )
    .unwrap();
    let variable = |name: &str, text: &str| (format!("GRID_BATCH_{name}"), text.to_owned());
    let variables = [
        variable("POLL_INTERVAL", "2s"),
        variable("POLL_HOLD_AFTER", "2s"),
        variable("SERVICES_STRATEGY", "b=serial"),
    ];
    let flags = vec![("poll.interval".to_owned(), "3s".to_owned())];
    let config = Config::load(Some(&file), variables.into_iter(), flags).unwrap();
    assert_eq!(config.poll.give_up_after.as_secs(), 1);
    assert_eq!(config.poll.hold_after.as_secs(), 2);
    assert_eq!(config.poll.interval.as_secs(), 3);
    let names = |setting: &Setting| -> Vec<String> {
        config.settings.entries(setting).map(GivenValue::name).collect()
    };
    assert_eq!(names(&ServicesConfig::strategy), ["services.\"b\".strategy"]);
    assert_eq!(names(&ServicesConfig::after_invalid), ["services.\"b\".after_invalid"]);
}

#[test]
fn errors_name_the_line_and_the_rule() {
    let cases = [
        (
            "\n[poll]\nintervall = \"1s\"",
            "line 3 of c.toml: there is no setting poll.intervall; did you mean poll.interval?",
        ),
        ("colour = 1", "line 1 of c.toml: there is no setting colour"),
        (
            "[poll]\ninterval = \"soon\"",
            "line 2 of c.toml: poll.interval is \"soon\"; it must be a number with a unit, and not \
             zero, such as \"500ms\", \"2s\" or \"1h\"",
        ),
        (
            "[poll]\ninterval = \"0s\"",
            "line 2 of c.toml: poll.interval is \"0s\"; it must be a number with a unit, and not",
        ),
        (
            "[poll]\ninterval = 5",
            "line 2 of c.toml: poll.interval is 5; it must be a text in quotes",
        ),
        (
            "[submit]\nconcurrency = 0",
            "line 2 of c.toml: submit.concurrency is \"0\"; it must be a number from 1 to 10000",
        ),
        (
            "[submit]\nconcurrency = -1",
            "line 2 of c.toml: submit.concurrency is \"-1\"; it must be a number",
        ),
        ("database = 7", "line 1 of c.toml: database is not shown; it must be a text in quotes"),
        ("\n\nlisten = ", "line 3 of c.toml: not valid TOML: "),
        ("listen = \"0.0.0.0:1\"", "line 1 of c.toml: 0.0.0.0:1 is not a loopback address; "),
        (
            "listen = [\"unix:/s\", \"[::]:1\"]",
            "line 1 of c.toml: [::]:1 is not a loopback address; ",
        ),
        ("listen = []", "line 1 of c.toml: listen is empty; "),
        (
            "listen = [\"unix:s\"]",
            "line 1 of c.toml: listen is [\"unix:s\"]; after unix: it must be the absolute path of a file",
        ),
        (
            "listen = [\"tls:127.0.0.1:1\"]",
            "line 1 of c.toml: an address with tls: needs http.tls_certificate and http.tls_key",
        ),
        (
            "[http]\ntls_key = \"k\"",
            "line 2 of c.toml: http.tls_certificate and http.tls_key must both be given, or neither",
        ),
        (
            "[http]\ntls_certificate = \"c\"\ntls_key = \"k\"",
            "line 2 of c.toml: http.tls_certificate has no effect, ",
        ),
        (
            "[http]\nsocket_mode = \"rw\"",
            "line 2 of c.toml: http.socket_mode is \"rw\"; it must be octal digits, such as \"0600\"",
        ),
        (
            "[access]\nmode = \"off\"",
            "line 2 of c.toml: access.mode is \"off\"; it must be \"none\", \"ledger_keys\" or \"tokens\"",
        ),
        (
            "[access]\nmode = \"tokens\"\nkeys = [\"02ab=read\"]",
            "line 3 of c.toml: access.keys is [\"02ab=read\"]; each item must be KEY=SCOPES@SERVICES",
        ),
        (
            "[access]\nkeys = \
             [\"02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5=read@*\"]",
            "line 2 of c.toml: access.keys has no effect, because access.mode is none; ",
        ),
        (
            "[intake]\nrate_of_client = \"0\"",
            "line 2 of c.toml: intake.rate_of_client is \"0\"; it must be empty, or a rate: ",
        ),
        (
            "[ledger]\nurls = [\n \"ftp://x\"]",
            "line 2 of c.toml: ledger.urls is [\"ftp://x\"]; a URL must begin with http://",
        ),
        (
            "[ledger]\nurls = [\"http://b\u{fc}cher\", \"http://[::1\"]",
            "line 2 of c.toml: ledger.urls is [\"http://b\u{fc}cher\", \"http://[::1\"]; \
             item 2: the port must be a number",
        ),
        (
            "[ledger]\nrequest_timeout = \"1h\"",
            "line 2 of c.toml: ledger.request_timeout is \"1h\"; it must be at most 45m",
        ),
        (
            "[claims]\nfull_expiry = \"80s\"",
            "line 2 of c.toml: claims.full_expiry is 80s; it must be at least claims.idle_expiry \
             and ten times ledger.request_timeout, together 150s, or equal to claims.idle_expiry and more \
             than ten times ledger.request_timeout, 120s: ",
        ),
        (
            "[retention]\nafter = \"1h\"",
            "line 2 of c.toml: retention.after is 3600s; it must be more than \
             ledger.late_arrival_limit and poll.give_up_after, 3600s, ",
        ),
        (
            "[retention]\nafter = \"soon\"",
            "line 2 of c.toml: retention.after is \"soon\"; it must be empty, or it must be a number \
             with a unit, ",
        ),
        (
            "[claims]\nidle_expiry = \"120s\"\nfull_expiry = \"120s\"",
            "line 3 of c.toml: claims.full_expiry is 120s; ",
        ),
        (
            "[claims]\nidle_expiry = \"100s\"\nfull_expiry = \"180s\"",
            "line 3 of c.toml: claims.full_expiry is 180s; ",
        ),
        (
            "[pools.\"0x1\"]\ngas_admin = \"a\"",
            "line 2 of c.toml: the pool 0x1 has the gas admin a, which gas_admins lacks",
        ),
        (
            "[evm]\ngas_admins = [\"a\"]",
            "line 2 of c.toml: gas_admins.*.key is set for one gas admin or pool: ",
        ),
        (
            "[gas_admins.a]\nkey = \"keystore:k\"",
            "line 2 of c.toml: the gas admin a has a keystore, whose password gas_admins.a.password lacks",
        ),
        (
            "[gas_admins.a]\npassword = \"env:P\"",
            "line 2 of c.toml: gas_admins has no gas admin a with a keystore",
        ),
        (
            "[gas_admins.a]\npassword = \"hidden\"",
            "line 2 of c.toml: gas_admins.\"a\".password is not shown; a password must be in a file, \
             whose path has a /, or in a variable, as env:VARIABLE",
        ),
        (
            "[evm]\ngas_admins = [\"a=k\", \"a=l\"]",
            "line 2 of c.toml: gas_admins.*.key names a key twice",
        ),
        (
            "[ledger]\nkind = \"sawtooth\"\n[services.\"a::b\"]\nnode = \"http://c\"",
            "line 4 of c.toml: services.*.node is for a ledger whose services are at one node each; ",
        ),
        (
            "[ledger]\nkind = \"evm\"\n[services.\"a::b\"]\nnode = \"http://c\"",
            "line 4 of c.toml: services.*.node is for a ledger whose services are at one node each; ",
        ),
        (
            "[ledger]\nkind = \"scabbard\"\nurls = [\"http://a\", \"http://b\"]",
            "line 3 of c.toml: ledger.urls has 2 URLs; a scabbard service is at one node, so ",
        ),
        (
            "[ledger]\nkind = \"scabbard\"\nurls = [\"http://a\", \"http://b\"]\n\
             [services.\"a::b\"]\nnode = \"http://c\"",
            "line 3 of c.toml: ledger.urls has 2 URLs; a scabbard service is at one node, so ",
        ),
        (
            "[ledger]\nkind = \"sawtooth\"\n[services.\"a::b\"]\npeers = [\"d@http://c\"]",
            "line 4 of c.toml: services.*.peers is for a ledger whose services are at one node each; ",
        ),
        (
            "[ledger]\nurls = [\"http://c/\"]\n[services.\"a::b\"]\npeers = [\"d@http://c\"]",
            "line 4 of c.toml: services.*.peers names the node of a::b itself, http://c; ",
        ),
        (
            "[ledger]\nurls = [\"http://d\"]\n[services.\"a::b\"]\nnode = \"http://c\"\n\
             peers = [\"d@http://c\"]",
            "line 5 of c.toml: services.*.peers names the node of a::b itself, http://c; ",
        ),
        (
            "[services.\"a::b\"]\npeers = [\"http://c\"]",
            "line 2 of c.toml: services.\"a::b\".peers is [\"http://c\"]; each item must be ID@URL",
        ),
        (
            "[services.\"a::b\"]\npeers = [\"b@http://c\"]",
            "line 2 of c.toml: services.\"a::b\".peers: a::b is its own peer; ",
        ),
        (
            "[services.\"*\"]\nnode = \"http://c\"",
            "line 2 of c.toml: services.\"*\".node: a service must be circuit::service",
        ),
        (
            "[services.\"a*\"]\nstrategy = \"serial\"",
            "line 2 of c.toml: services.\"a*\".strategy has a pattern as its key; ",
        ),
        (
            "[services.\"a::b\"]\nnod = \"http://c\"",
            "line 2 of c.toml: there is no setting services.*.nod; did you mean services.*.node?",
        ),
        (
            "[poll]\ninterval = { file = \"x\" }",
            "line 2 of c.toml: poll.interval is { file = \"x\" }; it must be a text in quotes",
        ),
        (
            "database = { file = \"/nowhere/x\" }",
            "line 1 of c.toml: the file of database, /nowhere/x, cannot be read: ",
        ),
        ("poll = 3", "line 1 of c.toml: there is no setting poll"),
    ];
    for (text, expected) in cases {
        let error = load_file(text).expect_err(text);
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}

#[test]
fn equal_expiries_may_outlast_a_submission() {
    let text = "[claims]\nidle_expiry = \"121s\"\nfull_expiry = \"121s\"";
    let config = load_file(text).unwrap();
    assert_eq!(config.claims.idle_expiry, config.times().full_expiry);
}

#[test]
fn peers_have_ids_and_nodes_of_their_own() {
    let text = "[ledger]\nurls = [\"http://alpha\"]\n\
                [services.\"c::a1\"]\npeers = [\"b1@http://beta/\", \"d1@http://delta\"]\n\
                [services.\"c::a2\"]\npeers = [\"b2@http://beta\"]";
    let config = load_file(text).unwrap();
    let peer = |service: &str, peer: &str, url: &str| PeerService {
        service: service.parse().unwrap(),
        peer: peer.parse().unwrap(),
        url: url.to_owned(),
    };
    let expected = [
        peer("c::a1", "c::b1", "http://beta"),
        peer("c::a1", "c::d1", "http://delta"),
        peer("c::a2", "c::b2", "http://beta"),
    ];
    assert_eq!(config.services.peers, expected);
    assert_eq!(config.node_urls(), ["http://alpha", "http://beta", "http://delta"]);
}

#[test]
fn scabbard_services_without_peers_are_told() {
    let missing = |text: &str| load_file(&format!("[ledger]\n{text}")).unwrap().missing_peers();
    let scabbard = "kind = \"scabbard\"\nname = \"a\"\nurls = [\"http://a\"]\n";
    let text = missing(scabbard).unwrap();
    assert!(text.starts_with("services.*.peers is not set: if the node of a service"), "{text}");
    let peers = format!("{scabbard}[services.\"a::b\"]\npeers = [\"d@http://c\"]\n");
    assert_eq!(missing(&peers), None);
    let text = missing(&format!("{peers}[services.\"e::f\"]\nnode = \"http://g\"\n")).unwrap();
    assert!(text.starts_with("services.*.peers has no node of e::f: "), "{text}");
    assert_eq!(missing("kind = \"sawtooth\"\nurls = [\"http://a\"]\n"), None);
}

#[test]
fn several_nodes_of_a_circuit_belong_in_the_peers() {
    let text = "[ledger]\nkind = \"scabbard\"\nurls = [\"http://a\", \"http://b\"]";
    assert!(load_file(text).unwrap_err().contains("belong in services.*.peers"));
}

#[test]
fn key_given_instead_of_its_location_is_not_shown() {
    let key = "5eC2e7".repeat(11)[..64].to_owned();
    for text in [format!("a={key}"), format!("a=0x{key}"), format!("a=env:{key}"), key.clone()] {
        let error = load_variable("GRID_BATCH_GAS_ADMINS_KEY", &text).unwrap_err();
        assert!(!error.contains(&key[..8]), "{error}");
    }
}

#[test]
fn alias_is_overridden_by_the_prefixed_variable() {
    let alias = ("MAXIMUM_GAS_PRICE".to_owned(), "150".to_owned());
    let prefixed = ("GRID_BATCH_EVM_MAXIMUM_GAS_PRICE".to_owned(), "99".to_owned());
    let price = |variables: Vec<(String, String)>| {
        let config = Config::load(None, variables.into_iter(), Vec::new()).unwrap();
        config.settings.get::<String>(SETTINGS.named("evm.maximum_gas_price").unwrap()).unwrap()
    };
    assert_eq!(price(vec![alias.clone()]), "150");
    assert_eq!(price(vec![prefixed, alias]), "99");
}

#[test]
fn unknown_variable_with_our_prefix_is_an_error() {
    let error = load_variable("GRID_BATCH_POLL_INTERVALL", "1s").unwrap_err();
    assert_eq!(
        error,
        "the variable GRID_BATCH_POLL_INTERVALL: there is no setting GRID_BATCH_POLL_INTERVALL; \
         did you mean GRID_BATCH_POLL_INTERVAL?"
    );
    for name in ["PATH", "GRID_BATCH_CONFIG", "GRID_BATCH_TEST_ANYTHING"] {
        load_variable(name, "x").unwrap();
    }
}

#[test]
fn named_file_must_exist() {
    let file = Path::new("/nowhere/c.toml");
    let error = Config::load(Some(file), std::iter::empty(), Vec::new()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("the configuration /nowhere/c.toml cannot be read: "), "{text}");
}

#[test]
fn value_is_read_from_the_file_that_a_later_source_names() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    let urls = file("urls", "http://u:p@a:1\n\n http://b \n").display().to_string();
    let settings = file("c.toml", "[ledger]\nurls = [\"http://c\"]");
    let variable = ("GRID_BATCH_LEDGER_URLS_FILE".to_owned(), urls);
    let load = |variables: Vec<(String, String)>, flags: &[(&str, &str)]| {
        let flags = flags.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Config::load(Some(&settings), variables.into_iter(), flags.collect())
    };
    assert_eq!(load(Vec::new(), &[]).unwrap().ledger.urls, ["http://c"]);
    let config = load(vec![variable.clone()], &[]).unwrap();
    assert_eq!(config.ledger.urls, ["http://u:p@a:1", "http://b"]);
    let config = load(vec![variable.clone()], &[("ledger.urls", "http://d")]).unwrap();
    assert_eq!(config.ledger.urls, ["http://d"]);
    assert_eq!(config.settings.given(&LedgerConfig::urls).file, None);

    let both = vec![variable, ("GRID_BATCH_LEDGER_URLS".to_owned(), "http://e".to_owned())];
    let error = load(both, &[]).unwrap_err().to_string();
    assert!(error.ends_with("are both given; give one of them"), "{error}");
}

#[test]
fn debug_output_has_no_password() {
    let variables = [
        ("GRID_BATCH_DATABASE", "postgres://u:hidden@h/d"),
        ("GRID_BATCH_LEDGER_URLS", "http://u:hidden@h"),
        ("GRID_BATCH_SERVICES_PEERS", "a::b=c@http://u:hidden@g"),
        ("GRID_BATCH_EVM_ORACLE_URL", "https://h/gas?apikey=hidden"),
    ];
    let variables = variables.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let config = Config::load(None, variables.into_iter(), Vec::new()).unwrap();
    assert!(!format!("{config:?}").contains("hidden"), "{config:?}");
}

#[test]
fn errors_have_no_password() {
    for (name, text) in [
        ("GRID_BATCH_DATABASE", "mysql://u:secret@h/d"),
        ("GRID_BATCH_LEDGER_URLS", "ftp://u:secret@h"),
        ("GRID_BATCH_SERVICES_NODE", "a::b=ftp://u:secret@h"),
        ("GRID_BATCH_SERVICES_PEERS", "a::b=c@ftp://u:secret@h"),
        ("GRID_BATCH_SERVICES_PEERS", "a::b=c@d@u:secret@h"),
        ("GRID_BATCH_SERVICES_NODE", "http://u:secret=x@h"),
        ("GRID_BATCH_SERVICES_NODE", "a::b=http://u:x,secret=y@h"),
        ("GRID_BATCH_LEDGER_PEERS", "a::b=c@http://u:x,secret=y@h"),
    ] {
        let error = load_variable(name, text).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn addresses_of_other_machines_need_tokens_or_permission() {
    for permission in ["mode = \"tokens\"", "allow_anonymous = true"] {
        let config = load_file(&format!("listen = \"0.0.0.0:1\"\n[access]\n{permission}")).unwrap();
        assert!(config.general.listen[0].is_reached_from_elsewhere());
    }
    let local = load_file("listen = [\"[::1]:1\", \"127.9.9.9:1\", \"unix:/s\"]").unwrap();
    assert!(!local.general.listen.iter().any(ListenAddress::is_reached_from_elsewhere));
}

#[test]
fn examples_of_how_to_expose_the_server_are_valid() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/security.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let (_, section) = text.split_once("## Expose it safely").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let examples: Vec<&str> = section
        .split("```toml")
        .skip(1)
        .map(|example| example.split_once("```").unwrap().0)
        .collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let config = load_file(example).unwrap_or_else(|error| panic!("{example}: {error}"));
        assert_eq!(config.access_mode(), AccessMode::Tokens, "{example}");
    }
}

#[test]
fn examples_of_the_guides_are_valid() {
    for guide in ["sawtooth", "scabbard", "several-instances"] {
        let file = format!("{}/../../docs/guides/{guide}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(file).unwrap();
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        load_file(example).unwrap_or_else(|error| panic!("{guide}: {error}"));
    }
}

/// Every setting of the release before with a value that a file could have, and what stands for it now: a setting and
/// its value, `same` for a setting that is as it was, or `none` for one without an effect.
const RECORDED: &str = include_str!("recorded_settings.txt");

#[test]
fn every_setting_of_the_release_before_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let mut count = 0;
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        count += 1;
        let [name, value, now] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let is_file = name.ends_with("_file") && name != "ledger.key_file";
        let value = if is_file {
            let file = directory.path().join("value");
            std::fs::write(&file, value).unwrap();
            file.display().to_string()
        } else {
            value.to_owned()
        };
        // A pool and a password need a gas admin.
        let needed = match name {
            "evm.pools" => vec![("gas_admins.*.key".to_owned(), "a=env:KEY".to_owned())],
            "evm.keystore_passwords" => {
                vec![("gas_admins.*.key".to_owned(), "a=keystore:k".to_owned())]
            }
            _ => Vec::new(),
        };
        let variable = format!("GRID_BATCH_{}", name.replace('.', "_").to_uppercase());
        let by_variable = [(variable, value.clone())].into_iter();
        let by_variable = Config::load(None, by_variable, needed.clone());
        let own = (name.to_owned(), value.clone());
        let by_flag = Config::from_flags([&needed[..], &[own]].concat());
        let in_file = match name.rsplit_once('.') {
            Some((section, key)) => format!("[{section}]\n{key} = {value:?}"),
            None => format!("{name} = {value:?}"),
        };
        std::fs::write(&file, in_file).unwrap();
        // In a file, the value of a setting that is as it was has a type.
        let file = Some(file.as_path()).filter(|_| now != "same");
        let by_file = Config::load(file, std::iter::empty(), needed);
        for config in [by_variable, by_flag, by_file] {
            let config = config.unwrap_or_else(|error| panic!("{line}: {error}"));
            let warnings: Vec<String> =
                config.old_names().iter().map(ToString::to_string).collect();
            match now.split_once(" = ") {
                None if now == "same" => assert!(warnings.is_empty(), "{line}: {warnings:?}"),
                None => assert!(
                    warnings[0].contains("it has no effect any more: "),
                    "{line}: {warnings:?}"
                ),
                Some((new, text)) => {
                    let is_shown = |given: &&GivenValue| given.name() == new && given.text == text;
                    let all = SETTINGS.iter().flat_map(|setting| config.settings.all_of(setting));
                    assert_eq!(all.filter(is_shown).count(), 1, "{line}");
                    let is_old = !is_file || !warnings.is_empty();
                    assert!(!is_old || warnings[0].contains("; use "), "{line}: {warnings:?}");
                }
            }
        }
    }
    assert_eq!(count, 122);
}
