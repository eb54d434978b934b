//! Proxies of the environment.

use std::{env, process::Command};

use grid_batch_http::{HttpClient, HttpOptions};
use tokio::{io::copy_bidirectional, net::TcpStream};

use crate::server::{OK, Server, client};

/// What the test sets in the process that runs it.
const VARIABLES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"];

/// Runs the test again, in a process with these variables.
fn run(test: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test]).env("IN_PROCESS", "yes");
    for name in VARIABLES {
        command.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

fn is_in_process() -> bool {
    env::var_os("IN_PROCESS").is_some()
}

async fn proxied(url: &str) -> Result<u16, String> {
    let response = client().get(url, &[("x-one", "1")]).await.map_err(|error| error.to_string())?;
    Ok(response.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn request_goes_through_the_proxy() {
    const TEST: &str = "proxies::request_goes_through_the_proxy";
    if is_in_process() {
        // Neither name can be resolved here: the proxy does that.
        assert_eq!(proxied("http://ledger.invalid:8008/a?b").await.unwrap(), 200);
        let error = proxied("http://excluded.invalid/").await.unwrap_err();
        assert!(error.starts_with("not sent: "), "{error}");
        // Loopback addresses are never reached through a proxy.
        let server = Server::responding(OK).await;
        assert_eq!(proxied(&server.url()).await.unwrap(), 200);
        assert_eq!(server.requests().len(), 1);
        return;
    }
    let proxy = Server::responding(OK).await;
    let url = format!("http://user:word@{}", proxy.address);
    run_blocking(TEST, vec![("HTTP_PROXY", url), ("NO_PROXY", "excluded.invalid".to_owned())])
        .await;
    let requests = proxy.requests();
    assert_eq!(requests.len(), 1);
    let head = &requests[0].head;
    assert!(head.starts_with("get http://ledger.invalid:8008/a?b http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nhost: ledger.invalid:8008\r\n"), "{head}");
    assert!(head.contains("\r\nx-one: 1\r\n"), "{head}");
    assert!(head.contains("\r\nproxy-authorization: basic "), "{head}");
}

/// A proxy that opens tunnels to this server, whatever they are asked for.
async fn tunnels_to(server: std::net::SocketAddr) -> Server {
    Server::new(move |mut peer| async move {
        let Some(_) = peer.request().await else { return };
        let mut target = TcpStream::connect(server).await.unwrap();
        peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
        let _ = copy_bidirectional(&mut peer.stream, &mut target).await;
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_request_goes_through_a_tunnel() {
    const TEST: &str = "proxies::encrypted_request_goes_through_a_tunnel";
    if is_in_process() {
        let client = HttpClient::new(&crate::tls::trusting("ca.pem")).unwrap();
        // The certificate is for another name, so the tunnel leads to the server.
        let error = client.get("https://ledger.invalid/secret", &[]).await.unwrap_err();
        assert!(error.to_string().contains("as it is in the certificate"), "{error}");
        return;
    }
    let server = crate::tls::responding().await;
    let proxy = tunnels_to(server.address).await;
    run_blocking(TEST, vec![("HTTPS_PROXY", proxy.url())]).await;
    let requests = proxy.requests();
    assert!(
        requests[0].head.starts_with("connect ledger.invalid:443 http/1.1\r\n"),
        "{requests:?}"
    );
    assert!(!requests[0].head.contains("secret"), "{requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_that_refuses_means_not_sent() {
    const TEST: &str = "proxies::proxy_that_refuses_means_not_sent";
    if is_in_process() {
        let error = proxied("https://ledger.invalid/").await.unwrap_err();
        assert!(error.starts_with("not sent: "), "{error}");
        return;
    }
    let proxy = Server::responding("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
    run_blocking(TEST, vec![("HTTPS_PROXY", proxy.url())]).await;
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_of_addresses_leaves_names_to_the_proxy() {
    const TEST: &str = "proxies::rule_of_addresses_leaves_names_to_the_proxy";
    if is_in_process() {
        let options = HttpOptions::default();
        let client = HttpClient::with_allowed_addresses(&options, |_| false).unwrap();
        assert_eq!(client.get("http://receiver.invalid/", &[]).await.unwrap().status, 200);
        for url in ["http://10.0.0.1/", "http://127.0.0.1/", "http://localhost/", "http://0x7f.1/"]
        {
            let error = client.get(url, &[]).await.unwrap_err().to_string();
            assert!(error.contains("no address of the host may be connected to"), "{error}");
        }
        return;
    }
    let proxy = Server::responding(OK).await;
    run_blocking(TEST, vec![("HTTP_PROXY", proxy.url())]).await;
    assert_eq!(proxy.requests().len(), 1);
}

async fn run_blocking(test: &'static str, variables: Vec<(&'static str, String)>) {
    let ended = tokio::task::spawn_blocking(move || {
        let variables: Vec<_> = variables.iter().map(|(name, it)| (*name, it.as_str())).collect();
        run(test, &variables);
    });
    ended.await.unwrap();
}
