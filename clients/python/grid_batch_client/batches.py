"""Transactions and batches of Sawtooth, with the bytes and ids that its SDKs make."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from coincurve import PrivateKey

from .protobuf import encode_message


class Signer:
    """Signs with a secret key of secp256k1."""

    def __init__(self, secret_key: bytes | str):
        """The secret key is 32 bytes, or 64 hexadecimal digits as in a key file of Sawtooth."""
        secret = bytes.fromhex(secret_key.strip()) if isinstance(secret_key, str) else secret_key
        if len(secret) != 32:
            raise ValueError("a secret key has 32 bytes, or 64 hexadecimal digits")
        self._key = PrivateKey(secret)
        self.public_key = self._key.public_key.format(compressed=True).hex()

    @classmethod
    def random(cls) -> "Signer":
        """A signer with a new key, which is lost with it."""
        return cls(PrivateKey().secret)

    def sign(self, data: bytes) -> str:
        """The compact signature of the SHA-256 of the bytes, with a low s, in hexadecimal."""
        return self._key.sign_recoverable(data)[:64].hex()


@dataclass(frozen=True)
class SignedTransaction:
    """A signed transaction; its id is its signature."""

    id: str
    data: bytes


@dataclass(frozen=True)
class SignedBatch:
    """A signed batch; its id is its signature."""

    id: str
    transaction_ids: list[str]
    data: bytes


def make_transaction(
    signer: Signer,
    *,
    family_name: str,
    family_version: str,
    payload: bytes,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    dependencies: Sequence[str] = (),
    nonce: str | None = None,
    batcher_public_key: str | None = None,
) -> SignedTransaction:
    """Signs a transaction.

    inputs, outputs: the addresses that it reads and writes, or prefixes of them
    dependencies: the ids of transactions that come first
    nonce: by default random, so that two transactions with the same payload differ
    batcher_public_key: who signs the batch, if not the signer of the transaction
    """
    header = encode_message(
        [
            (1, batcher_public_key or signer.public_key),
            (2, dependencies),
            (3, family_name),
            (4, family_version),
            (5, inputs),
            (6, secrets.token_hex(16) if nonce is None else nonce),
            (7, outputs),
            (9, hashlib.sha512(payload).hexdigest()),
            (10, signer.public_key),
        ]
    )
    signature = signer.sign(header)
    return SignedTransaction(signature, encode_message([(1, header), (2, signature), (3, payload)]))


def make_batch(signer: Signer, transactions: Sequence[SignedTransaction], *, trace: bool = False) -> SignedBatch:
    """Signs a batch of transactions, which name this signer as the one of their batch."""
    ids = [transaction.id for transaction in transactions]
    header = encode_message([(1, signer.public_key), (2, ids)])
    signature = signer.sign(header)
    data = [transaction.data for transaction in transactions]
    return SignedBatch(signature, ids, encode_message([(1, header), (2, signature), (3, data), (4, trace)]))


def encode_batches(batches: Sequence[SignedBatch]) -> bytes:
    """The list of batches that a request has as its body."""
    return encode_message([(1, [batch.data for batch in batches])])
