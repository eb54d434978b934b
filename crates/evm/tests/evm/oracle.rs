//! An oracle with a fixed price.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use grid_batch_evm::OracleOptions;

/// An oracle that returns this many gwei while the test runs.
pub fn oracle_returning(gwei: &str) -> OracleOptions {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/?apikey=secret", listener.local_addr().unwrap());
    let body = format!("{{\"result\":{{\"FastGasPrice\":\"{gwei}\"}}}}");
    let length = body.len();
    let answer =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let request = stream.read(&mut [0; 4096]);
            drop(request.and_then(|_| stream.write_all(answer.as_bytes())));
        }
    });
    OracleOptions::new(url, "/result/FastGasPrice")
}
