"""Submits a batch, waits for its end and lists it, with the client of openapi-python-client."""

import sys
import time
from io import BytesIO

from generated import Client
from generated.api.batches import get_batch, list_batches, submit_own_batches
from generated.models import AcceptedListJson, BatchStateName, ListBatchesStateItem
from generated.types import File

url, file = sys.argv[1:]
client = Client(base_url=url, raise_on_unexpected_status=True)
with open(file, "rb") as batches:
    body = File(payload=BytesIO(batches.read()))
submitted = submit_own_batches.sync(client=client, body=body)
assert isinstance(submitted, AcceptedListJson), submitted
batch_id = submitted.data[0].id
while get_batch.sync(batch_id, client=client).state != BatchStateName.COMMITTED:
    time.sleep(0.05)
states = [ListBatchesStateItem.COMMITTED, ListBatchesStateItem.INVALID]
listed = list_batches.sync(client=client, state=states)
found = next(batch for batch in listed.data if batch.id == batch_id)
print(found.state, found.stored_at.year)
