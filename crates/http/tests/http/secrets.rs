//! What an address or a header holds beside the place is shown to nobody.

use grid_batch_http::{HttpError, SocketOptions, open_socket};

use crate::server::{OK, Server, client, nobody};

const SECRET: &str = "pass-word";

fn assert_hidden(error: &HttpError) {
    for shown in [error.to_string(), format!("{error:?}")] {
        assert!(!shown.contains(SECRET), "{shown}");
    }
}

#[tokio::test]
async fn no_error_shows_a_password() {
    let closed = Server::says("").await;
    let broken = Server::says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await;
    let nobody = nobody().await;
    for place in [
        closed.address.to_string(),
        broken.address.to_string(),
        nobody.to_string(),
        "nobody.invalid".to_owned(),
        "127.0.0.1:port".to_owned(),
        "{host}".to_owned(),
        String::new(),
    ] {
        for scheme in ["http", "ftp", "nonsense of"] {
            let url = format!("{scheme}://user:{SECRET}@{place}/{SECRET}?token={SECRET}");
            match client().get(&url, &[]).await {
                Err(error) => assert_hidden(&error),
                Ok(answer) => assert_hidden(&answer.body.unwrap_err()),
            }
            let opened = open_socket(&url, &[], &[], &SocketOptions::default()).await;
            assert_hidden(&opened.err().unwrap());
        }
    }
}

#[tokio::test]
async fn headers_that_cannot_be_sent_are_an_error_that_shows_no_value() {
    let server = Server::keeps_saying(OK).await;
    for header in [("authorization", "pass-word\n"), ("no name", SECRET)] {
        let error = client().get(&server.url(), &[header]).await.unwrap_err();
        assert!(matches!(error, HttpError::Request(_)), "{error}");
        assert_hidden(&error);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_password_of_the_address_is_sent_as_a_header() {
    let server = Server::keeps_saying(OK).await;
    let url = format!("http://user:{SECRET}@{}/path", server.address);
    client().get(&url, &[]).await.unwrap();
    let request = server.requests().remove(0);
    // Heads are read in lower case.
    let expected = "basic dXNlcjpwYXNzLXdvcmQ=".to_ascii_lowercase();
    assert!(request.head.contains(&expected), "{request:?}");
    assert!(!request.head.contains(SECRET), "{request:?}");
}
