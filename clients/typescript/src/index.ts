export type { components, paths } from "./api.js";
export { encodeBatches, makeBatch, makeTransaction, Signer } from "./batches.js";
export type { SignedBatch, SignedTransaction, TransactionFields } from "./batches.js";
export { GridBatch } from "./client.js";
export type { BatchDetails, ConnectOptions, SubmitOptions, WaitOptions } from "./client.js";
export { GridBatchError } from "./error.js";
export type { BatchEvent, EventOptions, PositionedEvent } from "./events.js";
export { verifyWebhook, WebhookVerificationError } from "./webhooks.js";
export type { WebhookMessage, WebhookRequest } from "./webhooks.js";
