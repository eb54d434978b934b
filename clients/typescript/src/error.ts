import type { components } from "./api.js";

type Problem = Partial<components["schemas"]["Problem"]>;

/** The server has refused a request. */
export class GridBatchError extends Error {
  constructor(
    /** The status of the response. */
    readonly status: number,
    /** What the server answered, with a `code` for programs. */
    readonly problem: Problem,
    /** After how many seconds to try again, if the server said so. */
    readonly retryAfter?: number,
  ) {
    super(problem.detail ?? problem.title ?? `the server answered with status ${status}`);
    this.name = "GridBatchError";
  }

  /** The number of the error in the manual of the HTTP interface. */
  get code(): number | undefined {
    return this.problem.code;
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 408 || this.status === 429 || this.status >= 500;
  }

  static of(response: Response, problem: unknown): GridBatchError {
    const seconds = Number(response.headers.get("retry-after") ?? NaN);
    const isProblem = typeof problem === "object" && problem !== null;
    const retryAfter = Number.isFinite(seconds) ? seconds : undefined;
    return new GridBatchError(response.status, isProblem ? problem : {}, retryAfter);
  }
}
