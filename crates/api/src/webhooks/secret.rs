use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::WebhookSecret;

/// A new secret for a webhook, and the text in which a receiver is told it, once.
pub fn new_webhook_secret() -> io::Result<(WebhookSecret, String)> {
    let mut bytes = vec![0; WebhookSecret::BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let text = format!("whsec_{}", BASE64_STANDARD.encode(&bytes));
    Ok((WebhookSecret::new(bytes), text))
}
