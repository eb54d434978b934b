// The stream of events, read over any number of connections.
import type { components } from "./api.js";
import { GridBatchError } from "./error.js";
import { Retries } from "./retry.js";

/** One event of a batch. */
export type BatchEvent = components["schemas"]["EventJson"];

/** An event, and the position after it: a program that stores both together misses no event and sees none twice. */
export interface PositionedEvent {
  event: BatchEvent;
  position: string;
}

export interface EventOptions {
  /** A position, `oldest` or, by default, `latest`. */
  after?: string;
  /** Only events of this service. */
  serviceId?: string;
  /** Only events of these kinds. */
  kinds?: readonly components["schemas"]["EventKindName"][];
  /** Ends the loop with an error. */
  signal?: AbortSignal;
}

/** How requests are sent. */
export interface Connection {
  url: string;
  fetch: typeof globalThis.fetch;
  headers: Record<string, string>;
}

/** After this long without a byte the connection is lost: the server sends a comment every 15 seconds. */
const SILENCE = 45_000;

/** Yields events until the caller leaves the loop. Throws if events after the position are no longer kept. */
export async function* followEvents(
  connection: Connection,
  options: EventOptions,
): AsyncGenerator<PositionedEvent, never> {
  const retries = new Retries(options.signal);
  let position = options.after ?? "latest";
  for (;;) {
    try {
      for await (const { id, data } of messages(connection, options, position)) {
        retries.reset();
        if (id !== undefined) position = id;
        if (data !== undefined) yield { event: JSON.parse(data) as BatchEvent, position };
      }
      // The server ends a stream after some minutes.
      await retries.wait(50);
    } catch (error) {
      await retries.after(error);
    }
  }
}

interface Message {
  id?: string;
  data?: string;
}

async function* messages(connection: Connection, options: EventOptions, after: string): AsyncGenerator<Message> {
  const query = new URLSearchParams({ after });
  if (options.serviceId !== undefined) query.set("service_id", options.serviceId);
  if (options.kinds !== undefined) query.set("kind", options.kinds.join(","));
  const lost = new AbortController();
  const end = () => lost.abort();
  options.signal?.addEventListener("abort", end);
  let silence = setTimeout(end, SILENCE);
  try {
    const headers = { ...connection.headers, accept: "text/event-stream" };
    const url = `${connection.url}/v1/events/stream?${query}`;
    const response = await connection.fetch(url, { headers, signal: lost.signal });
    if (!response.ok) throw GridBatchError.of(response, await response.json().catch(() => ({})));
    let rest = "";
    for await (const text of texts(response)) {
      clearTimeout(silence);
      silence = setTimeout(end, SILENCE);
      const parts = (rest + text).split("\n\n");
      rest = parts.pop() ?? "";
      yield* parts.map(parseMessage);
    }
  } finally {
    clearTimeout(silence);
    options.signal?.removeEventListener("abort", end);
    end();
  }
}

async function* texts(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  for (;;) {
    const read = await reader?.read();
    if (read === undefined || read.done) return;
    yield decoder.decode(read.value, { stream: true });
  }
}

function parseMessage(text: string): Message {
  const value = (name: string) =>
    text.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  return { id: value("id"), data: value("data") };
}
