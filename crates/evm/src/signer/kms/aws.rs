use std::{error::Error, time::Duration};

use alloy_primitives::Address;
use alloy_signer_aws::{
    AwsSigner, AwsSignerError,
    aws_sdk_kms::{
        Client,
        error::{ProvideErrorMetadata, SdkError},
    },
};
use aws_config::{BehaviorVersion, ConfigLoader, retry::RetryConfig};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};

use super::kms_signer::{AlloySigner, Failure, KmsSigner, root_cause};
use crate::signer::SignerError;

impl KmsSigner {
    /// The signer with this key of AWS KMS: its id, ARN or alias. Region and credentials are found as by every program
    /// that uses AWS: in the environment, in files, or from the machine's role.
    pub fn aws(key: &str, account: Address, time_limit: Duration) -> Self {
        Self::aws_with(key, account, time_limit, |config| config)
    }

    /// The same signer with changes of its configuration, such as another endpoint.
    pub fn aws_with(
        key: &str,
        account: Address,
        time_limit: Duration,
        configure: impl Fn(ConfigLoader) -> ConfigLoader + Send + Sync + 'static,
    ) -> Self {
        let name = format!("key {key} of AWS KMS");
        let key = key.to_owned();
        let connect = move || {
            let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring));
            let config = aws_config::defaults(BehaviorVersion::latest());
            // The sender tries again later.
            let config =
                config.http_client(http.build_https()).retry_config(RetryConfig::disabled());
            let (config, key) = (configure(config).load(), key.clone());
            async move {
                let signer = AwsSigner::new(Client::new(&config.await), key, None).await;
                Ok(Box::new(signer.map_err(|error| failure(&error))?) as AlloySigner)
            }
        };
        Self::new(name, account, time_limit, connect, failure)
    }
}

fn failure(error: &(dyn Error + 'static)) -> Failure {
    match error.downcast_ref() {
        Some(AwsSignerError::Sign(error)) => sdk_failure(error),
        Some(AwsSignerError::GetPublicKey(error)) => sdk_failure(error),
        _ => (SignerError::WrongAnswer, error.to_string()),
    }
}

fn sdk_failure<E: ProvideErrorMetadata + Error + 'static>(error: &SdkError<E>) -> Failure {
    let SdkError::ServiceError(service_error) = error else {
        return (SignerError::Unavailable, root_cause(error));
    };
    let status = service_error.raw().status().as_u16();
    let code = service_error.err().code().unwrap_or("an error without a code");
    let reason = format!("it answered with {code} (HTTP status {status})");
    let is_temporary = code.starts_with("Throttling") || matches!(status, 408 | 429 | 500..);
    (if is_temporary { SignerError::Unavailable } else { SignerError::Refused }, reason)
}
