// The services by age and depth, and one service with why it waits.

import { ago, batchLink, button, contains, duration, element, facts, number, replace, route, serviceLink, state, table } from "../dom.js";
import { may } from "../access.js";
import { all, get, path } from "../server.js";
import { actionButton, buttonRow, serviceButton } from "../verbs.js";
import { batchTable } from "./batches.js";

/** What stops a service, in a few words each. */
export function problems(service) {
  return [
    ...service.waits.map((wait) => wait.text),
    service.held > 0 && `${service.held} held`,
    service.halts > 0 && "an invalid batch stops it",
    service.failing ?? service.parked,
  ].filter(Boolean);
}

export function stateOf(service) {
  if (service.paused) return state("paused");
  if (service.halts > 0) return state("stopped");
  if (service.stopped_by_holds) return state("held");
  if (service.failing) return state("failing");
  return state(service.open > 0 ? "running" : "idle");
}

const COLUMNS = [
  { name: "Service", cell: (it) => serviceLink(it.service_id), by: (it) => it.service_id },
  { name: "State", cell: stateOf, by: (it) => stateOf(it).textContent },
  { name: "Oldest", number: true, cell: (it) => duration(it.oldest_age_seconds), by: (it) => -(it.oldest_age_seconds ?? -1) },
  { name: "Open", number: true, cell: (it) => number(it.open), by: (it) => -it.open },
  { name: "Under way", number: true, cell: (it) => number(it.under_way), by: (it) => -it.under_way },
  { name: "Held", number: true, cell: (it) => number(it.held), by: (it) => -it.held },
  { name: "Why it waits", text: true, cell: (it) => problems(it).join("; "), by: (it) => problems(it).join() },
];

export function services({ main, refresh }) {
  let filter = "";
  let idle = false;
  let sorted = COLUMNS[2];
  let read = [];
  const list = element("div");
  const show = () => {
    const shown = read.filter((it) => contains(filter, it.service_id));
    const by = (service) => sorted.by(service);
    shown.sort((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : a.service_id.localeCompare(b.service_id)));
    const columns = COLUMNS.map((column) => ({
      ...column,
      sorted: column === sorted ? "ascending" : null,
      head: button(column.name, `sort ${column.name}`, () => { sorted = column; show(); }, { title: `Sort by ${column.name}` }),
    }));
    const actions = shown.some((it) => may("operate", it.service_id)) ? [{ name: "Actions", cell: (it) => pauseButton(it, refresh) }] : [];
    replace(list, table("Services", [...columns, ...actions], shown, "No service matches."));
  };
  main.append(
    element("h1", {}, "Services"),
    element("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      element("label", {}, "Id contains", element("input", { type: "search", name: "id", oninput: (event) => { filter = event.target.value; show(); } })),
      element("label", { class: "inline" },
        element("input", { type: "checkbox", name: "idle", onchange: (event) => { idle = event.target.checked; refresh(); } }), "also without open batches")),
    list);
  const load = async () => {
    read = await all("/v1/services", idle ? { idle: "true" } : {}, Infinity);
    show();
  };
  return { main, load };
}

function pauseButton(service, refresh) {
  // The overview ends the pause of all services.
  if (service.paused && (!service.paused.operator || service.paused.of_all)) return null;
  return service.paused
    ? serviceButton("resume", service.service_id, "end the pause of the service", refresh)
    : serviceButton("pause", service.service_id, "start no new submission of the service; what is under way is followed", refresh);
}

export function service({ main, id, refresh }) {
  const load = async () => {
    const [explained, open] = await Promise.all([
      get(path("services", id, "explain")), get("/v1/batches", { service_id: id, state: "open", order: "oldest", limit: 20 }),
    ]);
    const it = explained.service;
    const owner = it.owner;
    replace(main,
      element("h1", {}, "Service ", element("span", { class: "id" }, id)),
      element("p", { class: "notice" }, explained.text),
      buttonRow(
        pauseButton(it, refresh),
        owner && serviceButton("release_claim", id, "end the claim of the instance; any instance takes the service next", refresh),
        explained.actions.filter((action) => !["pause", "resume"].includes(action.verb))
          .map((action) => actionButton(action, explained.oldest?.attempts, refresh))),
      facts([
        ["State", stateOf(it)],
        ["Open", `${number(it.open)}, ${number(it.under_way)} under way, ${number(it.in_doubt)} in doubt, ${number(it.held)} held`],
        ["Oldest open batch", explained.oldest && element("span", {}, batchLink(explained.oldest.id, id), ` stored `, ago(explained.oldest.stored_at))],
        ["Last error", it.failing],
        ["Strategy", `${it.strategy}, up to ${it.lanes} under way; after an invalid batch: ${it.after_invalid}`],
        ["Instance", owner ? `${owner.name ?? owner.instance_id}${owner.draining ? ", which drains" : ""}` : "no instance claims it"],
        ["Paused", it.paused && element("span", {}, ago(it.paused.since), `: ${it.paused.reason}`)],
      ]),
      element("h2", {}, "Oldest open batches"),
      batchTable(open.data, "No batch is open.", { ofOne: true }),
      element("p", {}, element("a", { href: route("batches", undefined, { service: id }), "data-key": "all" }, "All batches of the service")));
  };
  return { main, load };
}
