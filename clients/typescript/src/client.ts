import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./api.js";
import { encodeBatches, type SignedBatch } from "./batches.js";
import { GridBatchError } from "./error.js";
import { type EventOptions, followEvents, type PositionedEvent } from "./events.js";
import { Retries } from "./retry.js";

/** A batch, with its state, failed attempts and history. */
export type BatchDetails = components["schemas"]["DetailsJson"];

export interface ConnectOptions {
  /** An access token, if the server needs one. */
  token?: string;
  /** Sends the requests in the place of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

export interface SubmitOptions {
  /** The service of the batches; by default `global`, that of Sawtooth. */
  serviceId?: string;
  /** Text by which lists of batches can select these. */
  label?: string;
  /** For how long a request that fails for a time is repeated. */
  signal?: AbortSignal;
}

export interface WaitOptions {
  /** Which service, if several have the batch. */
  serviceId?: string;
  /** Ends the wait with an error, such as `AbortSignal.timeout(60_000)`. */
  signal?: AbortSignal;
}

/** How long one request waits for the end of a batch, and the pause if the server could not let it wait. */
const WAIT_SECONDS = 30;
const SHORTEST_PAUSE = 200;

/** A server, by its URL. */
export class GridBatch {
  /** All requests of the interface, with the types of its description. */
  readonly http: Client<paths>;
  readonly #url: string;
  readonly #fetch: typeof globalThis.fetch;
  readonly #headers: Record<string, string>;

  constructor(url: string, { token, fetch = globalThis.fetch }: ConnectOptions = {}) {
    this.#url = new URL(url).href.replace(/\/+$/, "");
    this.#fetch = fetch;
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    this.http = createClient<paths>({ baseUrl: this.#url, fetch, headers: this.#headers });
  }

  /** Submits batches. All are stored once this returns. It repeats the request until then, which stores none twice. */
  async submit(batches: readonly SignedBatch[], options: SubmitOptions = {}): Promise<string[]> {
    const query = { service_id: options.serviceId, label: options.label };
    const body = encodeBatches(batches);
    const { data } = await this.#repeat(options.signal, (signal) =>
      this.http.POST("/v1/batches", {
        params: { query },
        // The description has no better type for a binary body.
        body: body as unknown as string,
        bodySerializer: (bytes: unknown) => bytes as BodyInit,
        headers: { "content-type": "application/octet-stream" },
        signal,
      }),
    );
    return data.map((batch) => batch.id);
  }

  /** Waits until a batch has ended, also while the server restarts. Its `state` is then `committed` or `invalid`. */
  async wait(id: string, options: WaitOptions = {}): Promise<BatchDetails> {
    const query = { service_id: options.serviceId, wait: WAIT_SECONDS };
    for (;;) {
      const batch = await this.#repeat(options.signal, (signal) =>
        this.http.GET("/v1/batches/{id}", { params: { path: { id }, query }, signal }),
      );
      if (batch.state === "committed" || batch.state === "invalid") return batch;
      await new Retries(options.signal).wait(SHORTEST_PAUSE);
    }
  }

  /** The events as they happen, over lost connections and restarts of the server, until the loop is left. */
  events(options: EventOptions = {}): AsyncGenerator<PositionedEvent, never> {
    return followEvents({ url: this.#url, fetch: this.#fetch, headers: this.#headers }, options);
  }

  /** Repeats a request until it succeeds or is refused for good. */
  async #repeat<T>(
    signal: AbortSignal | undefined,
    send: (signal?: AbortSignal) => Promise<{ data?: T; error?: unknown; response: Response }>,
  ): Promise<T> {
    const retries = new Retries(signal);
    for (;;) {
      try {
        const { data, error, response } = await send(signal);
        if (data !== undefined) return data;
        throw GridBatchError.of(response, error);
      } catch (error) {
        await retries.after(error);
      }
    }
  }
}
