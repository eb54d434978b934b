//! Errors do not show the secrets of URLs and headers.

use grid_batch_http::{HttpError, WebSocketOptions};

use crate::server::{OK, Server, client, unused_address};

const SECRET: &str = "pass-word";

fn assert_hidden(error: &HttpError) {
    for shown in [error.to_string(), format!("{error:?}")] {
        assert!(!shown.contains(SECRET), "{shown}");
    }
}

#[tokio::test]
async fn error_does_not_show_a_password() {
    let closed = Server::responding_once("").await;
    let broken = Server::responding_once("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await;
    let unused = unused_address().await;
    for host in [
        closed.address.to_string(),
        broken.address.to_string(),
        unused.to_string(),
        "unknown.invalid".to_owned(),
        "127.0.0.1:port".to_owned(),
        "{host}".to_owned(),
        String::new(),
    ] {
        for scheme in ["http", "ftp", "nonsense of"] {
            let url = format!("{scheme}://user:{SECRET}@{host}/{SECRET}?token={SECRET}");
            match client().get(&url, &[]).await {
                Err(error) => assert_hidden(&error),
                Ok(response) => assert_hidden(&response.body.unwrap_err()),
            }
            let opened =
                client().open_websocket(&url, &[], &[], &WebSocketOptions::default()).await;
            assert_hidden(&opened.err().unwrap());
        }
    }
}

#[tokio::test]
async fn invalid_header_is_an_error_without_its_value() {
    let server = Server::responding(OK).await;
    for header in [("authorization", "pass-word\n"), ("no name", SECRET)] {
        let error = client().get(&server.url(), &[header]).await.unwrap_err();
        assert!(matches!(error, HttpError::InvalidRequest(_)), "{error}");
        assert_hidden(&error);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn password_of_the_url_is_sent_as_a_header() {
    let server = Server::responding(OK).await;
    let url = format!("http://user:{SECRET}@{}/path", server.address);
    client().get(&url, &[]).await.unwrap();
    let request = server.requests().remove(0);
    // The test server converts heads to lower case.
    let expected = "basic dXNlcjpwYXNzLXdvcmQ=".to_ascii_lowercase();
    assert!(request.head.contains(&expected), "{request:?}");
    assert!(!request.head.contains(SECRET), "{request:?}");
}
