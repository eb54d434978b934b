// What the reader's token may do, and what this server serves: nothing else is offered.

import { get } from "./server.js";

const NOTHING = { name: null, scopes: {}, serves: {} };
let known = NOTHING;

/** Asks the server. Until it has answered, nothing is offered. */
export async function readAccess() {
  known = await get("/v1/access");
}

export function forgetAccess() {
  known = NOTHING;
}

/** Whether the token has a scope for a service or, without one, for all services. */
export function may(scope, service) {
  const patterns = known.scopes[scope] ?? [];
  return patterns.some((pattern) => pattern === "*" || (service !== undefined && matches(pattern, service)));
}

/** Whether the token has a scope for any service. */
export function mayForSome(scope) {
  return (known.scopes[scope] ?? []).length > 0;
}

export function serves(part) {
  return Boolean(known.serves[part]);
}

/** Each `*` of a pattern stands for any characters. */
function matches(pattern, service) {
  const parts = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(service);
}
