// Requests to the interface of the server that this page comes from, with the reader's token.

const TOKEN = "grid-batch-token";

/** What a server answers instead of what was asked for. */
export class Problem extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? problem?.error?.message ?? `the server answers with status ${status}`);
    this.status = status;
    this.code = problem?.code ?? problem?.error?.code;
  }
}

export function token() {
  return sessionStorage.getItem(TOKEN);
}

export function setToken(text) {
  if (text) sessionStorage.setItem(TOKEN, text.trim());
  else sessionStorage.removeItem(TOKEN);
}

function headers(more = {}) {
  return token() ? { ...more, authorization: `Bearer ${token()}` } : more;
}

export function path(...parts) {
  return "/v1/" + parts.map(encodeURIComponent).join("/");
}

export function withQuery(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  return query ? `${path}?${query}` : path;
}

/** All pages of a list, up to so many items. */
export async function all(path, parameters, most = 5000) {
  const data = [];
  let after;
  do {
    const page = await get(path, { ...parameters, limit: 1000, after });
    data.push(...page.data);
    after = page.next;
  } while (after && data.length < most);
  return data;
}

async function answer(response) {
  const type = response.headers.get("content-type") ?? "";
  const json = type.includes("json") ? await response.json() : null;
  // The health is a report also if it is bad.
  if (response.ok || (json && json.parts)) return json;
  throw new Problem(response.status, json);
}

export async function get(path, parameters = {}) {
  const options = { headers: headers({ accept: "application/json" }), cache: "no-store" };
  return answer(await fetch(withQuery(path, parameters), options));
}

/** The same; `null` if the token does not allow it, or it is not served here. */
export async function getIfAllowed(path, parameters = {}) {
  try {
    return await get(path, parameters);
  } catch (error) {
    if (error instanceof Problem && [403, 404].includes(error.status)) return null;
    throw error;
  }
}

export async function post(path, body) {
  const options = { method: "POST", headers: headers({ "content-type": "application/json" }), body: JSON.stringify(body) };
  return answer(await fetch(path, options));
}

/** Calls `onEvent` for each event from now on, until the signal is aborted. EventSource could not send the token. */
export async function follow(onEvent, onConnected, signal) {
  let after = "latest";
  while (!signal.aborted) {
    try {
      const url = withQuery("/v1/events/stream", { after });
      const response = await fetch(url, { headers: headers({ accept: "text/event-stream" }), signal });
      if (!response.ok) throw new Problem(response.status, null);
      onConnected(true);
      await readStream(response.body, (field, value) => {
        if (field === "id") after = value;
        if (field === "data") onEvent(JSON.parse(value));
      });
    } catch (error) {
      if (signal.aborted) return;
      onConnected(false);
      if (error instanceof Problem && error.status === 401) return;
      if (error instanceof Problem && error.status === 410) after = "latest";
      await new Promise((resume) => setTimeout(resume, 3000));
    }
  }
}

async function readStream(body, onField) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const colon = line.indexOf(":");
      if (colon > 0) onField(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ""));
    }
  }
}
