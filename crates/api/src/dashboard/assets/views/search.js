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
    textFilter({}, "id", idLabel),
    controls,
    element("button", { type: "submit", class: "primary" }, "Search"));
}

export function textFilter(given, name, label) {
  return element("label", {}, label, element("input", { name, value: given[name] ?? "", autocomplete: "off" }));
}

export function stateFilter(given, states) {
  const options = ["", "open", "ended", ...states].map((name) =>
    element("option", { value: name, selected: name === given.state }, name ? name.replaceAll("_", " ") : "any"));
  return element("label", {}, "State", element("select", { name: "state" }, options));
}

/** Links to older entries, if the page is not the last, and back to the newest. `cursor` is the name of the parameter. */
export function pageLinks(view, what, given, cursor, position, next) {
  const to = (text, key, parameters) =>
    element("p", {}, element("a", { href: route(view, undefined, parameters), "data-key": key }, text));
  return [
    next && to(`Older ${what}`, "next", { ...given, [cursor]: next }),
    position && to(`The newest ${what}`, "first", given),
  ];
}
