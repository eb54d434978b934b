// A list with filters: the form, and the links to its other pages.

import { element, route } from "../dom.js";

/** A form that opens a view with its filters, or the one thing whose id it has. `given` are the present filters. */
export function searchForm(view, given, idLabel, ...controls) {
  const search = (event) => {
    event.preventDefault();
    const { id, ...filters } = Object.fromEntries(new FormData(event.target));
    location.hash = id ? route(view, id) : route(view, undefined, filters);
  };
  return element("form", { class: "filters", role: "search", onsubmit: search },
    idLabel && textFilter({}, "id", idLabel),
    controls,
    element("button", { type: "submit", class: "primary" }, "Search"));
}

export function textFilter(given, name, label) {
  return element("label", {}, label, element("input", { name, value: given[name] ?? "", autocomplete: "off" }));
}

/** A choice of one of these: [value, text]. */
export function choice(given, name, label, options) {
  return element("label", {}, label, element("select", { name }, options.map(([value, text]) =>
    element("option", { value, selected: value === (given[name] ?? "") }, text))));
}

export function stateFilter(given, states) {
  const text = (name) => name ? name.replaceAll("_", " ") : "any";
  return choice(given, "state", "State", ["", "open", "ended", ...states].map((name) => [name, text(name)]));
}

/** When something was stored: the parameter of the server, and its value. */
const TIMES = [
  ["", "any time"], ["newer_than:15m", "in the last 15 min"], ["newer_than:1h", "in the last hour"], ["newer_than:24h", "in the last 24 h"],
  ["newer_than:7d", "in the last 7 days"], ["older_than:1h", "over an hour ago"], ["older_than:24h", "over a day ago"],
];

export function timeFilter(given) {
  return choice(given, "stored", "Stored", TIMES);
}

/** The parameters of the server for a choice of a time. */
export function timeParameters(stored) {
  const [name, value] = (stored ?? "").split(":");
  return TIMES.some(([known]) => known === stored) && name ? { [name]: value } : {};
}

/** Links to older entries, if the page is not the last, and back to the newest. `cursor` is the name of the parameter. */
export function pageLinks(view, what, given, cursor, position, next, [older, newest] = ["Older", "The newest"]) {
  const to = (text, key, parameters) => element("a", { href: route(view, undefined, parameters), "data-key": key }, text);
  if (!next && !position) return null;
  return element("p", { class: "pages" },
    position && to(`${newest} ${what}`, "first", given),
    next && to(`${older} ${what}`, "next", { ...given, [cursor]: next }));
}
