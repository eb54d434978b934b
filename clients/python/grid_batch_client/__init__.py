"""A client of grid-batch: builds, submits and follows batches, and verifies webhooks."""

from .batches import Signer, SignedBatch, SignedTransaction, encode_batches, make_batch, make_transaction
from .client import GridBatch, GridBatchError, PositionedEvent
from .webhooks import WebhookMessage, WebhookVerificationError, verify_webhook

__all__ = [
    "GridBatch",
    "GridBatchError",
    "PositionedEvent",
    "SignedBatch",
    "SignedTransaction",
    "Signer",
    "WebhookMessage",
    "WebhookVerificationError",
    "encode_batches",
    "make_batch",
    "make_transaction",
    "verify_webhook",
]
