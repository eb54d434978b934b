use std::sync::Arc;

use grid_batch_core::StatusUrlResolver;

/// Asks the same nodes about everything, but for batches that begin with a digit: they were taken
/// by the node of that place.
#[derive(Debug)]
pub struct Nodes(Vec<String>);

impl Nodes {
    pub fn at(urls: impl IntoIterator<Item = impl Into<String>>) -> Arc<Self> {
        Arc::new(Self(urls.into_iter().map(Into::into).collect()))
    }
}

impl StatusUrlResolver for Nodes {
    fn status_urls(&self, _: &str, batch_id: &str) -> Vec<String> {
        let mut urls = self.0.clone();
        let place = batch_id.chars().next().and_then(|first| first.to_digit(10));
        if let Some(place) = place.and_then(|place| usize::try_from(place).ok())
            && place < urls.len()
        {
            urls.swap(0, place);
        }
        urls
    }
}

/// An address where nobody listens.
pub fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
