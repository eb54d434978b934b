use crate::http::refusals;

refusals! {
    /// A webhook does not exist, or cannot be added.
    pub(crate) enum WebhookRequestError {
        #[error("there is no such webhook")]
        [NOT_FOUND, 1084, "Webhook Not Found"]
        WebhookNotFound,
        #[error("the limit of webhooks is reached; remove one that is not needed")]
        [CONFLICT, 1085, "Too Many Webhooks"]
        TooManyWebhooks,
    }
}
