// Elements are made with textContent only: no text of the server becomes markup.

/** Makes an element. Properties that begin with "on" are listeners; the others are attributes. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  append(made, children);
  return made;
}

function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces what is in an element. The control that had the focus keeps it: it has the same data-key. */
export function replace(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const scrolled = [...parent.querySelectorAll(".scroll")].map((it) => it.scrollLeft);
  parent.replaceChildren();
  append(parent, children);
  parent.querySelectorAll(".scroll").forEach((it, at) => { it.scrollLeft = scrolled[at] ?? 0; });
  if (focused !== undefined) parent.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

/** A table. A column is {name, number, cell}; the first cell of a row, or the one after a box, is its heading. */
export function table(caption, columns, rows, empty) {
  if (rows.length === 0) return element("p", { class: "muted" }, empty);
  const kind = (column) => [column.number && "number", column.text && "text"].filter(Boolean).join(" ") || null;
  const head = columns.map((column) =>
    element("th", { scope: "col", class: kind(column), "aria-sort": column.sorted ?? null }, column.head ?? column.name));
  const heading = columns.findIndex((column) => !column.box);
  const row = (value) => element("tr", {}, columns.map((column, at) =>
    element(at === heading ? "th" : "td", { scope: at === heading ? "row" : null, class: kind(column), "data-name": column.name }, column.cell(value))));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {},
      element("thead", {}, element("tr", {}, head)),
      element("tbody", {}, rows.map(row))));
}

/** A list of names and values, without those that are empty. */
export function facts(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "");
  return element("dl", { class: "facts" },
    shown.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

export function link(text, ...parts) {
  return element("a", { href: route(...parts), class: "id", "data-key": `link ${parts.join(" ")}` }, text);
}

/** The address of a view. */
export function route(view, id, parameters) {
  const path = id === undefined ? `#/${view}` : `#/${view}/${encodeURIComponent(id)}`;
  const query = new URLSearchParams(Object.entries(parameters ?? {}).filter(([, value]) => value)).toString();
  return query ? `${path}?${query}` : path;
}

export function batchLink(id, service) {
  return link(id.slice(0, 12), "batches", id, { service });
}

export function serviceLink(id) {
  return link(id, "services", id);
}

export function button(text, key, onclick, properties = {}) {
  return element("button", { type: "button", "data-key": key, onclick, ...properties }, text);
}

/** A state by its name and a color: that of its kind. */
export function state(name, detail, kind) {
  const kinds = { committed: "good", invalid: "bad", held: "warning", delayed: "warning", in_doubt: "warning", absent: "warning",
    ok: "good", running: "good", degraded: "warning", paused: "warning", draining: "warning", unhealthy: "bad", failing: "bad", stopped: "bad",
    executed: "good", withdrawn: "good", failed: "bad", parked: "warning" };
  return element("span", { class: `state ${kind || kinds[name] || ""}` }, name.replaceAll("_", " "), detail ?? "");
}

/** A duration in one unit, rounded down. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return `${Math.floor(whole / 60)} min`;
  if (whole < 172800) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86400)} days`;
}

/** How long ago a time was, with the time itself as title. */
export function ago(text) {
  if (!text) return "";
  const seconds = (Date.now() - Date.parse(text)) / 1000;
  return element("time", { datetime: text, title: text }, `${duration(seconds)} ago`);
}

/** Whether one of these texts has a part, in any case. */
export function contains(part, ...texts) {
  return texts.some((text) => String(text ?? "").toLowerCase().includes(part.toLowerCase()));
}

/** The time of a day, to the second. */
export function clock(milliseconds) {
  return new Date(milliseconds).toLocaleTimeString("en-GB");
}

export function number(value) {
  return Number(value).toLocaleString("en");
}
