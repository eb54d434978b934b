// Requests of webhooks, which are signed as Standard Webhooks describes.
import type { BatchEvent } from "./events.js";

/** A request that a receiver of webhooks got. */
export interface WebhookRequest {
  headers: Headers | Record<string, string | string[] | undefined>;
  /** The body as it was received: another JSON text with the same fields has another signature. */
  body: string | Uint8Array;
}

/** What the server tells a receiver. */
export interface WebhookMessage {
  /** Equal if the message is sent again. */
  id: string;
  type: string;
  timestamp: string;
  /** Missing in a message that is not about a batch, such as a ping. */
  data?: BatchEvent;
}

/** The request is not one of the server's, or too old. */
export class WebhookVerificationError extends Error {
  override name = "WebhookVerificationError";
}

/** How far the time of a request may be from this machine's, in seconds. */
const TOLERANCE = 300;

/** Verifies a request by the secret of the webhook (`whsec_…`), or by several while the secret changes. */
export async function verifyWebhook(
  secrets: string | readonly string[],
  { headers, body }: WebhookRequest,
  { tolerance = TOLERANCE }: { tolerance?: number } = {},
): Promise<WebhookMessage> {
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) =>
    header(headers, name),
  ) as [string, string, string];
  const age = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (!(age <= tolerance)) throw new WebhookVerificationError("the time of the request is too far from now");
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  for (const secret of typeof secrets === "string" ? [secrets] : secrets) {
    if (await isSigned(secret, signed, signatures)) return { id, ...JSON.parse(text) } as WebhookMessage;
  }
  throw new WebhookVerificationError("no signature of the request is of this secret");
}

function header(headers: WebhookRequest["headers"], name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value !== "string") throw new WebhookVerificationError(`the request has no ${name}`);
  return value;
}

/** Whether one of the signatures is of the secret, compared in constant time. */
async function isSigned(secret: string, signed: Uint8Array<ArrayBuffer>, signatures: string): Promise<boolean> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const bytes = decodeBase64(secret.replace(/^whsec_/, ""));
  if (bytes === undefined) throw new WebhookVerificationError("the secret is not whsec_ and base64");
  const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
  for (const signature of signatures.split(" ")) {
    const value = signature.startsWith("v1,") ? decodeBase64(signature.slice(3)) : undefined;
    if (value !== undefined && (await crypto.subtle.verify(algorithm, key, value, signed))) return true;
  }
  return false;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
