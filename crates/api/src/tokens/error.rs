use crate::http::refusals;

refusals! {
    /// A token does not exist, or cannot be created.
    pub(crate) enum TokenRequestError {
        #[error("there is no token {0:?} that is not revoked")]
        [NOT_FOUND, 1086, "Token Not Found"]
        TokenNotFound(String),
        #[error("there is a token with the name {0:?}; revoke it first, or choose another name")]
        [CONFLICT, 1087, "Token Name In Use"]
        NameInUse(String),
    }
}
