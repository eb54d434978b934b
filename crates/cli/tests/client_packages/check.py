"""What the package for Python does, as the test of packages asks."""

import json
import sys
import threading
import time
import urllib.error
import urllib.request

from grid_batch_client import GridBatch, Signer, encode_batches, make_batch, make_transaction, verify_webhook

BATCHER, ALICE, BOB = (Signer(byte * 32) for byte in ("11", "22", "33"))


def transaction(payload, signer=BATCHER, **fields):
    usual = {"family_name": "intkey", "family_version": "1.0", "nonce": "0", "batcher_public_key": BATCHER.public_key}
    return make_transaction(signer, **{**usual, "payload": payload, **fields})


def fixtures():
    """The lists that crates/protocol/tests/fixtures has from the published SDKs."""
    one = transaction(b"one")
    many = [transaction(b"%d" % n, (BATCHER, ALICE, BOB)[n % 3], nonce=str(n)) for n in range(12)]

    def batch(*transactions, **options):
        return make_batch(BATCHER, transactions, **options)

    return {
        "one_transaction": [batch(one)],
        "many_transactions": [batch(*many)],
        "several_batches": [batch(many[0]), batch(many[1], many[2]), batch(many[3])],
        "trace": [batch(one, trace=True)],
        "binary": [batch(transaction(bytes(range(256)), family_name="погода", nonce="naïve 🌦"))],
        "empty_payload": [batch(transaction(b""))],
        "addresses": [
            batch(
                transaction(
                    b"declared",
                    inputs=["1cf126", "00" * 35],
                    outputs=["1cf126" + "ab" * 32],
                    dependencies=[one.id, many[1].id],
                )
            )
        ],
    }


def encode(_):
    print(json.dumps({name: encode_batches(batches).hex() for name, batches in fixtures().items()}))


def follow(url):
    """Follows the events of two batches, of which the second is submitted while no server listens."""
    server = GridBatch(url)
    batches = [make_batch(BATCHER, [transaction(payload)]) for payload in (b"first", b"second")]
    ids = [batch.id for batch in batches]
    seen = []

    def collect():
        for event, position in GridBatch(url).events(after="oldest"):
            seen.append({"id": event.id, "batch": ids.index(event.batch_id), "position": position})
            if event.batch_id == ids[1] and event.state == "committed":
                return

    followed = threading.Thread(target=collect)
    followed.start()
    server.submit(batches[:1])
    server.wait(ids[0])
    print("committed first", flush=True)
    while is_live(url):
        time.sleep(0.02)
    print("no server", flush=True)
    [batch_id] = server.submit(batches[1:])
    state = server.wait(batch_id).state
    followed.join()
    print("followed", json.dumps({"state": state, "seen": seen}))


def is_live(url):
    try:
        with urllib.request.urlopen(f"{url}/health/live"):
            return True
    except (urllib.error.URLError, ConnectionError):
        return False


def verify(file):
    with open(file, encoding="utf8") as request:
        received = json.load(request)
    message = verify_webhook(received["secret"], received["headers"], received["body"])
    print(message.id, message.data and message.data.state)


task, *arguments = sys.argv[1:]
{"encode": encode, "follow": follow, "verify": verify}[task](*(arguments or [None]))
