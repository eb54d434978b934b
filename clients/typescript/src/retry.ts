import { GridBatchError } from "./error.js";

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 15_000;

/** The pauses between attempts: each is twice as long as the last, with jitter, and at least what the server wants. */
export class Retries {
  #pause = FIRST_PAUSE;

  constructor(readonly signal?: AbortSignal) {}

  /** Begins with short pauses again. */
  reset(): void {
    this.#pause = FIRST_PAUSE;
  }

  /** Waits after a failure that may be temporary. Throws any other one. */
  async after(error: unknown): Promise<void> {
    this.signal?.throwIfAborted();
    if (error instanceof GridBatchError && !error.isTemporary) throw error;
    const wanted = error instanceof GridBatchError ? (error.retryAfter ?? 0) * 1000 : 0;
    await this.wait(Math.max(wanted, this.#pause * (0.5 + Math.random() / 2)));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }

  async wait(milliseconds: number): Promise<void> {
    const { signal } = this;
    let wake = () => {};
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
      signal?.addEventListener("abort", wake);
    });
    signal?.removeEventListener("abort", wake);
    signal?.throwIfAborted();
  }
}
