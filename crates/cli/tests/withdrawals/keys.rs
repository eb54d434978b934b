//! Where the key of a gas admin is: in a file, in a keystore, or at a remote signer.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use grid_batch_test_chain::{SignerFault, Web3Signer};
use grid_batch_test_support::{
    process::run,
    wait::{wait_for, wait_until},
};
use serde_json::Value;

use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// The key of anvil's first account, encrypted with [`PASSWORD`].
const KEYSTORE: &str = r#"{"version": 3, "crypto": {"cipher": "aes-128-ctr",
    "cipherparams": {"iv": "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5"},
    "ciphertext": "6ad608bf63e7810f99077c77f68a6d152a220f9f26cdac6ed573e3b35cddb11a",
    "kdf": "scrypt", "kdfparams": {"dklen": 32, "n": 1024, "r": 8, "p": 1,
        "salt": "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"},
    "mac": "250dbb14e0df22c52e8f8a92690eedb03b6552dccaf6d16207a0621fffe5c7d6"}}"#;
const PASSWORD: &str = "correct horse";

/// Writes a file with this mode.
fn write(harness: &WithdrawalHarness, name: &str, text: &str, mode: u32) -> PathBuf {
    let file = harness.path().join(name);
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    file
}

/// Schedules a withdrawal and waits until it is paid.
fn assert_pays(harness: &WithdrawalHarness, server: &WithdrawalServer, amount: u64) {
    let id = server.schedule(&harness.withdrawal_request(0, amount));
    server.wait_until_withdrawn(&[id]);
    assert!(harness.paid(0).contains(&amount));
}

#[test]
fn key_file_that_others_can_read_is_refused() {
    let harness = WithdrawalHarness::new(1);
    let key = &harness.anvil.accounts()[0].secret_key;
    let file = write(&harness, "a.key", key, 0o644);
    let admin = format!("admin0={}", file.display());
    let output = run(harness.command(&[("--log", "error"), ("--gas-admins-key", &admin)]));
    let message = output.error_message();
    let path = file.display();
    let expected = format!("its mode is 644; restrict it with `chmod 600 {path}`");
    assert!(message.contains(&expected) && !message.contains(key), "{message}");

    write(&harness, "a.key", key, 0o600);
    assert_pays(&harness, &harness.serve_with(&[("--gas-admins-key", &admin)]), 1);
}

#[test]
fn withdrawal_is_paid_with_a_keystore() {
    let harness = WithdrawalHarness::new(1);
    let keystore = write(&harness, "a.json", KEYSTORE, 0o600);
    let password = write(&harness, "a.password", &format!("{PASSWORD}\n"), 0o600);
    let admin = format!("admin0=keystore:{}", keystore.display());
    let source = format!("admin0={}", password.display());
    let flags = [("--gas-admins-key", &*admin), ("--gas-admins-password", &*source)];
    let server = harness.serve_with(&[&flags[..], &[("--log", "trace")]].concat());
    assert_pays(&harness, &server, 1);
    let printed = format!("{}{}", server.process.stdout(), server.process.stderr());
    assert!(!printed.contains(PASSWORD), "the password was printed");
}

#[test]
fn keystore_that_cannot_be_used_is_named() {
    let harness = WithdrawalHarness::new(1);
    let keystore = write(&harness, "a.json", KEYSTORE, 0o600);
    let open = write(&harness, "open.password", PASSWORD, 0o604);
    let wrong = write(&harness, "wrong.password", "hidden", 0o600);
    let admin = format!("admin0=keystore:{}", keystore.display());
    for (source, expected) in [
        (format!("admin0={}", open.display()), "open.password cannot be used: other users may use"),
        (format!("admin0={}", wrong.display()), "a.json cannot be used: the password is wrong"),
        ("admin0=env:NO_SUCH_WORD".to_owned(), "password in the variable NO_SUCH_WORD, of the gas"),
    ] {
        let flags = [("--gas-admins-key", &*admin), ("--gas-admins-password", &*source)];
        let output = run(harness.command(&[&flags[..], &[("--log", "error")]].concat()));
        let message = output.error_message();
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("hidden") && !message.contains(PASSWORD), "{message}");
    }
}

#[test]
fn addresses_of_gas_admins_are_listed() {
    let harness = WithdrawalHarness::new(1);
    let keystore = write(&harness, "a.json", KEYSTORE, 0o600);
    let remote = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    let admins = format!(
        "file=env:KEY0,store=keystore:{},far=remote:{remote}@http://127.0.0.1:1",
        keystore.display()
    );
    let mut command = harness.command_with(&["gas-admins", "--gas-admins-key", &admins]);
    command.args(["--gas-admins-password", "store=env:WORD", "--testing-signer-timeout", "1s"]);
    command.args(["--pools-gas-admin", ""]);
    let output = run({
        command.env("WORD", PASSWORD);
        command
    });
    let first = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    assert_eq!(output.stdout, format!("far {remote}\nfile {first}\nstore {first}\n"), "{output:?}");
}

/// A server whose gas admin's key is at a signer.
fn serve_with_signer(harness: &WithdrawalHarness, signer: &Web3Signer) -> WithdrawalServer {
    let url = signer.url().replace("http://", "http://user:hidden@");
    let admin = format!("admin0=remote:{}@{url}", harness.anvil.accounts()[0].address);
    let mut command = harness.command(&[("--testing-signer-timeout", "1s")]);
    command.env("GRID_BATCH_GAS_ADMINS_KEY", admin);
    WithdrawalServer::start(command)
}

/// Waits until the withdrawal is parked for this reason, and returns it.
fn wait_until_parked(server: &WithdrawalServer, id: &str, reason: &str) -> Value {
    wait_for(&format!("{id} waits for: {reason}"), || {
        let withdrawal = server.withdrawal(id);
        let waits_for = withdrawal["waits_for"].as_str().unwrap_or_default();
        (withdrawal["state"] == "parked" && waits_for.contains(reason)).then_some(withdrawal)
    })
}

#[test]
fn withdrawal_waits_until_the_remote_signer_signs() {
    let harness = WithdrawalHarness::new(1);
    let signer = Web3Signer::start(&harness.anvil.accounts()[0]).unwrap();
    let server = serve_with_signer(&harness, &signer);
    assert_pays(&harness, &server, 1);
    signer.set(SignerFault::Unavailable);
    let id = server.schedule(&harness.withdrawal_request(0, 2));
    wait_until_parked(&server, &id, "the signer is unavailable: http://127.0.0.1:");
    signer.set(SignerFault::WrongKey);
    let parked = wait_until_parked(&server, &id, "not as the gas admin 0xf39Fd6e51aad88F6F4ce6aB8");
    assert_eq!(parked["transactions"], Value::Array(Vec::new()), "{parked}");
    assert_eq!((harness.nonce(0), &parked["fail_reason"]), (1, &Value::Null));
    signer.set(None);
    server.wait_until_withdrawn(&[id]);
    assert_eq!(harness.paid(0), [1, 2]);

    let log = server.process.stderr();
    assert!(log.contains("the signer does not sign; what this account sends waits"), "{log}");
    assert!(log.contains("the signer signs again") && !log.contains("hidden"), "{log}");
}

#[test]
fn hung_signer_keeps_no_transaction_open() {
    let harness = WithdrawalHarness::new(1);
    let signer = Web3Signer::start(&harness.anvil.accounts()[0]).unwrap();
    signer.set(SignerFault::Hung);
    let server = serve_with_signer(&harness, &signer);
    let first = server.schedule(&harness.withdrawal_request(0, 1));
    let mut ids = vec![first.clone()];
    // SQLite has one writer: a transaction that waits for the signer would keep the others waiting.
    wait_until("a withdrawal is stored while the signer is asked", || {
        if signer.unanswered() == 0 {
            return false;
        }
        let requests = signer.requests();
        let amount = u64::try_from(ids.len()).unwrap() + 1;
        ids.push(server.schedule(&harness.withdrawal_request(0, amount)));
        signer.unanswered() == 1 && signer.requests() == requests
    });
    wait_until_parked(&server, &first, "no complete response in time");
    signer.set(None);
    server.wait_until_withdrawn(&ids);
    let amounts = 1..=u64::try_from(ids.len()).unwrap();
    assert_eq!(harness.paid(0), Vec::from_iter(amounts));
}
