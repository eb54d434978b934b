"""Submits a batch that PyPI's sawtooth-sdk has built, and waits for its commit.

usage: sawtooth.py URL
"""

import hashlib
import json
import secrets
import sys
import urllib.request

from sawtooth_sdk.protobuf.batch_pb2 import Batch, BatchHeader, BatchList
from sawtooth_sdk.protobuf.transaction_pb2 import Transaction, TransactionHeader
from sawtooth_signing import CryptoFactory, create_context


def build():
    context = create_context("secp256k1")
    signer = CryptoFactory(context).new_signer(context.new_random_private_key())
    key = signer.get_public_key().as_hex()
    payload = b"drop-in"
    header = TransactionHeader(
        signer_public_key=key,
        batcher_public_key=key,
        family_name="intkey",
        family_version="1.0",
        inputs=["1cf126"],
        outputs=["1cf126"],
        nonce=secrets.token_hex(16),
        payload_sha512=hashlib.sha512(payload).hexdigest(),
    ).SerializeToString()
    transaction = Transaction(
        header=header, header_signature=signer.sign(header), payload=payload
    )
    header = BatchHeader(
        signer_public_key=key, transaction_ids=[transaction.header_signature]
    ).SerializeToString()
    batch = Batch(
        header=header, header_signature=signer.sign(header), transactions=[transaction]
    )
    return batch.header_signature, BatchList(batches=[batch]).SerializeToString()


def get(url):
    with urllib.request.urlopen(url) as response:
        return json.load(response)


def main(url):
    batch_id, body = build()
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url + "/batches", body, headers)
    with urllib.request.urlopen(request) as response:
        link = json.load(response)["link"]
    statuses = get(link + "&wait=20")["data"]
    assert [it["status"] for it in statuses] == ["COMMITTED"], statuses
    assert get(url + "/batches/" + batch_id)["data"]["header_signature"] == batch_id
    assert any(it["header_signature"] == batch_id for it in get(url + "/batches")["data"])


main(sys.argv[1])
