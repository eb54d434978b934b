//! A key in the KMS of a cloud, and what happens when that does not sign.

use std::{env, process::Command, sync::Arc, time::Duration};

use alloy_signer_aws::{
    aws_config::ConfigLoader,
    aws_sdk_kms::config::{Credentials, Region},
};
use alloy_signer_gcp::gcloud_sdk::TokenSourceType;
use grid_batch_core::{batches::LedgerStatus, ledger::Outcome};
use grid_batch_evm::{Address, KmsSigner, SignerError, TransactionSigner};
use grid_batch_test_chain::{Account, Anvil, AnvilOptions, KmsFault, KmsServer};
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::harness::Harness;

/// Longer than any response takes here.
const LIMIT: Duration = Duration::from_secs(60);
/// The key of a service account, which nothing but these tests uses.
const SERVICE_ACCOUNT_KEY: &str = include_str!("kms/service_account.pem");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cloud {
    Aws,
    Gcp,
}

const CLOUDS: [Cloud; 2] = [Cloud::Aws, Cloud::Gcp];

/// A signer with the server's key, at this URL.
fn signer(cloud: Cloud, url: &str, account: &Account, limit: Duration) -> KmsSigner {
    let account = account.address.parse().unwrap();
    match cloud {
        Cloud::Aws => {
            let url = url.to_owned();
            let configure = move |config: ConfigLoader| {
                let credentials = Credentials::new("an-id", "hidden", None, None, "test");
                let config = config.endpoint_url(&url).credentials_provider(credentials);
                config.region(Region::from_static("eu-west-1"))
            };
            KmsSigner::aws_with(KmsServer::AWS_KEY, account, limit, configure)
        }
        Cloud::Gcp => {
            let token_uri = url.replace("https://", "http://") + "/token";
            let credentials = move || service_account(&token_uri);
            KmsSigner::gcp_with(KmsServer::GCP_KEY, account, limit, url, credentials).unwrap()
        }
    }
}

fn service_account(token_uri: &str) -> TokenSourceType {
    let json = json!({
        "client_email": "signer@p.iam.gserviceaccount.com",
        "private_key_id": "1",
        "private_key": SERVICE_ACCOUNT_KEY,
        "token_uri": token_uri,
    });
    TokenSourceType::Json(json.to_string())
}

/// A KMS with the key of the gas admin of a chain.
fn start(cloud: Cloud) -> (Harness, KmsServer) {
    let mut harness = Harness::new();
    let kms = KmsServer::start(harness.admin()).unwrap();
    let signer = signer(cloud, kms.url(), harness.admin(), LIMIT);
    harness.restart_with(|options| options.signers = vec![Arc::new(signer)]);
    (harness, kms)
}

#[tokio::test]
async fn withdrawals_are_signed_by_a_kms() {
    for cloud in CLOUDS {
        let (harness, kms) = start(cloud);
        // The first signature has its `s` in the upper half.
        for number in 1..=2 {
            let id = harness.send_withdrawal().await;
            assert_eq!(harness.follow(id, 2).await, LedgerStatus::Committed, "{cloud:?}");
            assert_eq!((harness.polls().len(), kms.sign_requests()), (number, number));
        }
    }
}

#[tokio::test]
async fn withdrawal_waits_while_the_kms_does_not_sign() {
    use KmsFault::{AccessDenied, Garbage, Internal, KeyDisabled, Throttled, WrongKey};
    for cloud in CLOUDS {
        let (harness, kms) = start(cloud);
        // Before the first connection, and when it is established.
        for (amount, of_another) in [
            ("500", "and not of 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
            ("501", "failed to recover signature parity"),
        ] {
            let id = harness.schedule(amount);
            for (fault, kind, of_aws, of_gcp) in [
                (Throttled, "unavailable: ", "with ThrottlingException", "with ResourceExhausted"),
                (Internal, "unavailable: ", "with KMSInternalException", "with Internal"),
                (AccessDenied, "refuses", "with AccessDeniedException", "with PermissionDenied"),
                (KeyDisabled, "refuses", "with DisabledException", "with FailedPrecondition"),
                (WrongKey, "the signer ", of_another, of_another),
            ] {
                kms.set(fault);
                let message = parked(&harness, id).await;
                let name = match cloud {
                    Cloud::Aws => KmsServer::AWS_KEY,
                    Cloud::Gcp => KmsServer::GCP_KEY,
                };
                for part in [kind, name, if cloud == Cloud::Aws { of_aws } else { of_gcp }] {
                    assert!(message.contains(part), "{cloud:?}, {fault:?}: {message}");
                }
                assert!(!message.contains("hidden") && !message.contains("a-token"), "{message}");
            }
            kms.set(None);
            harness.accept(id).await;
            assert_eq!(harness.follow(id, 2).await, LedgerStatus::Committed, "{cloud:?}");
        }
        kms.set(Garbage);
        let message = parked(&harness, harness.schedule("502")).await;
        assert!(message.contains("gave a wrong answer"), "{message}");
    }
}

/// Sends a withdrawal, which is parked because it is not signed. Returns the reason.
async fn parked(harness: &Harness, id: WithdrawalId) -> String {
    let answer = harness.send(id).await;
    let message = answer.message.unwrap();
    assert_eq!((answer.outcome, harness.store.nonces(id).len()), (Outcome::Parked, 0), "{message}");
    message
}

async fn error(signer: &KmsSigner) -> String {
    match signer.sign(b"payload").await.unwrap_err() {
        SignerError::Unavailable(reason) => reason,
        other => panic!("{other}"),
    }
}

/// A KMS, and the account whose key it has.
fn start_kms() -> (KmsServer, Account) {
    let account = Anvil::start(&AnvilOptions::default()).unwrap().accounts()[0].clone();
    (KmsServer::start(&account).unwrap(), account)
}

#[tokio::test]
async fn kms_that_hangs_has_a_time_limit() {
    let (kms, account) = start_kms();
    for cloud in CLOUDS {
        let signer = signer(cloud, kms.url(), &account, Duration::from_millis(500));
        kms.set(KmsFault::Hung);
        let before_connection = error(&signer).await;
        kms.set(None);
        while signer.sign(b"payload").await.is_err() {}
        kms.set(KmsFault::Hung);
        for reason in [before_connection, error(&signer).await] {
            assert!(reason.ends_with(": no signature within 500ms"), "{cloud:?}: {reason}");
        }
    }
}

#[tokio::test]
async fn kms_that_cannot_be_reached_is_named() {
    let (kms, account) = start_kms();
    for cloud in CLOUDS {
        // The server speaks no TLS.
        let with_tls = kms.url().replace("http://", "https://");
        error(&signer(cloud, &with_tls, &account, LIMIT)).await;
        let reason = error(&signer(cloud, "http://127.0.0.1:1", &account, LIMIT)).await;
        assert!(reason.contains("Connection refused"), "{cloud:?}: {reason}");
    }
}

#[test]
fn region_and_credentials_of_aws_are_in_the_environment() {
    let (kms, account) = start_kms();
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "kms::signs_with_its_environment", "--ignored"]);
    child.env("GRID_BATCH_TEST_ACCOUNT", &account.address).env("AWS_REGION", "eu-west-1");
    child.env("AWS_ACCESS_KEY_ID", "an-id").env("AWS_SECRET_ACCESS_KEY", "hidden");
    child.env("AWS_ENDPOINT_URL_KMS", kms.url());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(kms.sign_requests(), 1, "{output:?}");
}

#[tokio::test]
#[ignore = "it runs in a process whose environment another test has set"]
async fn signs_with_its_environment() {
    let account = env::var("GRID_BATCH_TEST_ACCOUNT").unwrap().parse().unwrap();
    KmsSigner::aws(KmsServer::AWS_KEY, account, LIMIT).sign(b"payload").await.unwrap();
}

type GcpCredentials = Box<dyn Fn() -> TokenSourceType + Send + Sync>;

#[tokio::test]
async fn credentials_that_cannot_be_used_are_not_shown() {
    let (kms, account) = start_kms();
    let account: Address = account.address.parse().unwrap();
    let other = kms.url().to_owned();
    let sources: [(GcpCredentials, &str); 4] = [
        (Box::new(|| TokenSourceType::Json(r#"{"hidden": 1}"#.to_owned())), "cannot be used"),
        (Box::new(|| TokenSourceType::File("/no/such/file".into())), "No such file"),
        (Box::new(move || service_account(&other)), "no token for its credentials: 400"),
        (Box::new(|| service_account("http://127.0.0.1:1/token")), "Connection refused"),
    ];
    for (credentials, expected) in sources {
        let key = KmsServer::GCP_KEY;
        let signer = KmsSigner::gcp_with(key, account, LIMIT, kms.url(), credentials).unwrap();
        let reason = error(&signer).await;
        assert!(reason.contains(expected) && !reason.contains("hidden"), "{reason}");
    }
}
