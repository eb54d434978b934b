// Lists of batches: how many are in each state, filters, and verbs about many of them.

import { may } from "../access.js";
import { ago, batchLink, element, number, replace, route, serviceLink, state, table } from "../dom.js";
import { all, get, getIfAllowed } from "../server.js";
import { Selection, manyBar } from "../many.js";
import { pageLinks, searchForm, stateFilter, textFilter, timeFilter, timeParameters } from "./filters.js";

const OPEN_STATES = ["new", "submitting", "delayed", "in_doubt", "absent", "pending", "valid"];
const ENDED_STATES = ["invalid", "committed"];
const FILTERS = ["service", "state", "stored", "label", "error_contains", "held"];

/** A table of batches, with these columns before the others. Those of one service need not name it. */
export function batchTable(rows, empty, { before = [], ofOne = false } = {}) {
  return table("Batches", [
    ...before,
    { name: "Batch", cell: (it) => batchLink(it.id, it.service_id) },
    ...(ofOne ? [] : [{ name: "Service", cell: (it) => serviceLink(it.service_id) }]),
    { name: "State", cell: batchState },
    { name: "Stored", cell: (it) => ago(it.stored_at) },
    { name: "Attempts", number: true, cell: (it) => number(it.attempts) },
    { name: "Label", cell: (it) => it.label ?? "" },
    { name: "Last error", text: true, cell: (it) => it.last_error ?? "" },
  ], rows, empty);
}

/** The state of a batch, and whether it is held. */
export function batchState(it) {
  return it.held ? state(it.state, ", held", "warning") : state(it.state);
}

export function batches({ main, parameters, refresh }) {
  const given = Object.fromEntries(FILTERS.map((name) => [name, parameters.get(name) ?? ""]));
  const after = parameters.get("after");
  const selection = new Selection();
  const services = serviceNames();
  const counts = stateCounts(given);
  const list = element("div");
  const suggestions = element("datalist", { id: "services" });
  const service = textFilter(given, "service", "Service contains");
  service.querySelector("input").setAttribute("list", "services");
  main.append(
    element("h1", {}, "Batches"),
    counts.main,
    searchForm("batches", given, "Id, or its first 8 characters",
      service, suggestions,
      stateFilter(given, [...OPEN_STATES, ...ENDED_STATES]),
      timeFilter(given),
      textFilter(given, "label", "Label contains"),
      textFilter(given, "error_contains", "Last error contains"),
      element("input", { type: "hidden", name: "held", value: given.held })),
    list);
  let page = null;
  let filter = {};
  const show = () => replace(list,
    (page.next || page.data.some((row) => !row.ended_at)) && manyBar(selection, filter, refresh),
    batchTable(page.data, page.next ? "No batch matches among those examined so far." : "No batch matches.", { before: chooser(page.data, selection, show) }),
    pageLinks("batches", "batches", given, "after", after, page.next));
  const load = async () => {
    const names = await services();
    if (!suggestions.firstChild) replace(suggestions, names.map((value) => element("option", { value })));
    filter = filterOf(given, names);
    [page] = await Promise.all([get("/v1/batches", { ...filter, after, limit: 100 }), counts.load()]);
    show();
  };
  return { main, load };
}

function chooser(rows, selection, show) {
  return rows.some((row) => !row.ended_at && may("operate", row.service_id)) ? [selection.column(rows, show)] : [];
}

/** What the server is asked for: the index of a service is of use only for a whole id. */
function filterOf({ service, stored, label, ...others }, names) {
  const of = service && (names.includes(service) ? { service_id: service } : { service_contains: service });
  return { ...others, ...of, ...timeParameters(stored), label_contains: label };
}

/** The names of all services, read once. */
export function serviceNames() {
  let names = null;
  return async () => {
    const allowed = may("read");
    names ??= allowed ? (await all("/v1/services", { idle: "true" })).map((it) => it.service_id) : [];
    return names;
  };
}

/** Links to the batches in each state, with their numbers. Ended batches are those of a day: all are too many to count. */
function stateCounts(given) {
  const main = element("nav", { class: "counts", "aria-label": "States" });
  let ended = null;
  let endedAt = 0;
  const load = async () => {
    if (Date.now() - endedAt > 30000) {
      endedAt = Date.now();
      ended = (await getIfAllowed("/v1/history", { range: "24h" }))?.data ?? null;
    }
    const counts = (await getIfAllowed("/v1/counts"))?.counts;
    const of = (name, text, value, more = {}) => {
      const isCurrent = given.state === name && (given.held === "true") === Boolean(more.held);
      const parameters = { ...given, held: "", stored: "", state: name, ...more };
      return element("a", { href: route("batches", undefined, parameters), "aria-current": isCurrent ? "true" : null, "data-key": `count ${text}`, class: value ? null : "none" },
        text, value !== undefined && element("b", {}, number(value)));
    };
    const sum = (name) => ended?.reduce((total, point) => total + point[name], 0);
    replace(main,
      of("", "all"),
      of("open", "open", counts?.open),
      OPEN_STATES.map((name) => of(name, name.replaceAll("_", " "), counts?.states[name])),
      of("open", "held", counts?.held, { held: "true" }),
      of("committed", "committed in 24 h", sum("committed"), { stored: "newer_than:24h" }),
      of("invalid", "invalid in 24 h", sum("invalid"), { stored: "newer_than:24h" }));
  };
  return { main, load };
}
