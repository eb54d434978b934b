//! Submits a batch with the registry crate `scabbard`, waits for its commit, and reads state.
//!
//! usage: grid-batch-drop-in URL CIRCUIT::SERVICE

use std::{env, error::Error, time::Duration};

use cylinder::{Context, Signer, jwt::JsonWebTokenBuilder, secp256k1::Secp256k1Context};
use scabbard::client::{ReqwestScabbardClientBuilder, ScabbardClient, ServiceId};
use transact::protocol::{
    batch::{Batch, BatchBuilder},
    transaction::{HashMethod, TransactionBuilder},
};

const ADDRESS: &str = "1cf12600000000000000000000000000000000000000000000000000000000000000a7";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let [url, service] = [(); 2].map(|()| arguments.next().unwrap_or_default());
    let service = ServiceId::from_string(&service)?;
    let context = Secp256k1Context::new();
    let signer = context.new_signer(context.new_random_private_key());
    let token = JsonWebTokenBuilder::new().build(&*signer)?;
    let client = ReqwestScabbardClientBuilder::new()
        .with_url(&url)
        .with_auth(&format!("Bearer Cylinder:{token}"))
        .build()?;

    client.submit(&service, vec![batch(&*signer)?], Some(Duration::from_secs(20)))?;
    let value = client.get_state_at_address(&service, ADDRESS)?;
    if value.as_deref() != Some(b"7") {
        return Err(format!("the state at {ADDRESS} is {value:?}").into());
    }
    let entries = client.get_state_with_prefix(&service, Some("1cf126"))?;
    if entries.len() != 1 {
        return Err(format!("{} entries of state", entries.len()).into());
    }
    println!("committed, with the state root {}", client.get_current_state_root(&service)?);
    Ok(())
}

/// A batch that writes 7 to the address, in the language of the simulated ledger.
fn batch(signer: &dyn Signer) -> Result<Batch, Box<dyn Error>> {
    let address: Vec<u8> = hex(ADDRESS)?;
    let transaction = TransactionBuilder::new()
        .with_batcher_public_key(signer.public_key()?.into_bytes())
        .with_family_name("grid-batch-state".to_owned())
        .with_family_version("1.0".to_owned())
        .with_inputs(vec![address.clone()])
        .with_outputs(vec![address])
        .with_payload_hash_method(HashMethod::Sha512)
        .with_payload(format!("set {ADDRESS} 7").into_bytes())
        .with_nonce(b"1".to_vec())
        .build(signer)?;
    Ok(BatchBuilder::new().with_transactions(vec![transaction]).build(signer)?)
}

fn hex(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let pairs = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16));
    Ok(pairs.collect::<Result<_, _>>()?)
}
