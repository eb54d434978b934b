// Lists of batches with filters, and one batch: its history, why it waits, and what can be done.

import { ago, batchLink, element, facts, link, number, replace, serviceLink, state, table } from "../dom.js";
import { get, path } from "../server.js";
import { actionButton, batchButton, isAbout } from "../verbs.js";
import { pageLinks, searchForm, stateFilter, textFilter } from "./search.js";

const STATES = ["new", "submitting", "delayed", "in_doubt", "absent", "pending", "valid", "invalid", "committed"];
const FILTERS = ["service_id", "state", "label", "error_contains", "held"];

export function batchTable(rows, empty) {
  return table("Batches", [
    { name: "Batch", cell: (it) => batchLink(it.id, it.service_id) },
    { name: "Service", cell: (it) => serviceLink(it.service_id) },
    { name: "State", cell: (it) => state(it.state, it.held ? ", held" : "") },
    { name: "Stored", cell: (it) => ago(it.stored_at) },
    { name: "Attempts", number: true, cell: (it) => number(it.attempts) },
    { name: "Label", cell: (it) => it.label ?? "" },
    { name: "Last error", text: true, cell: (it) => it.last_error ?? "" },
  ], rows, empty);
}

export function batches({ main, parameters }) {
  const given = Object.fromEntries(FILTERS.map((name) => [name, parameters.get(name) ?? ""]));
  const after = parameters.get("after");
  const list = element("div");
  main.append(
    element("h1", {}, "Batches"),
    searchForm("batches", given, "Id, or its first 8 characters",
      textFilter(given, "service_id", "Service"),
      stateFilter(given, STATES),
      textFilter(given, "label", "Label"),
      textFilter(given, "error_contains", "Last error contains"),
      element("label", { class: "inline" }, element("input", { type: "checkbox", name: "held", value: "true", checked: given.held === "true" }), "held")),
    list);
  const load = async () => {
    const page = await get("/v1/batches", { ...given, after, limit: 50 });
    replace(list,
      batchTable(page.data, "No batch matches on this page."),
      pageLinks("batches", "batches", given, "after", after, page.next));
  };
  return { main, load };
}

export function batch({ main, id, parameters, refresh }) {
  const service = parameters.get("service") ?? undefined;
  const load = async () => {
    const of = { service_id: service };
    const [it, explained] = await Promise.all([get(path("batches", id), of), get(path("batches", id, "explain"), of)]);
    const isOpen = !it.ended_at;
    const actions = explained.actions.filter((action) => isAbout(action, it.id));
    const has = (verb) => actions.some((action) => action.verb === verb);
    replace(main,
      element("h1", {}, "Batch ", element("span", { class: "id" }, it.id.slice(0, 12))),
      element("p", { class: "notice" }, explained.text),
      element("div", { class: "buttons" },
        actions.map((action) => actionButton(action, it.attempts, refresh)),
        isOpen && !it.held && !has("hold") && batchButton("hold", it.id, it.service_id, it.attempts, "it is not sent, or not sent again, before it is released or decided", refresh)),
      facts([
        ["Id", element("span", { class: "id" }, it.id)],
        ["Service", serviceLink(it.service_id)],
        ["Withdrawal", explained.withdrawal && link(explained.withdrawal.id.slice(0, 12), "withdrawals", explained.withdrawal.id)],
        ["Transaction", explained.transaction && link(explained.transaction.id.slice(0, 12), "transactions", explained.transaction.id)],
        ["State", state(it.state, it.held ? ", held" : "")],
        ["Held", it.held && element("span", {}, ago(it.held.since), `: ${it.held.reason}`)],
        ["Label", it.label],
        ["Attempts", number(it.attempts)],
        ["Stored", element("span", {}, ago(it.stored_at), ` (${it.stored_at})`)],
        ["Last error", it.last_error],
        ["Next try", it.next_try_at],
        ["Before it", explained.position && `${number(explained.position.ahead)}${explained.position.more_ahead ? " or more" : ""} batches of its service`],
        ["Waits for", explained.blocker && batchLink(explained.blocker.id, it.service_id)],
        ["Transactions", it.transaction_ids.length > 0 && element("span", {}, it.transaction_ids.map((transaction) => [element("span", { class: "id" }, transaction.slice(0, 12)), " "]))],
      ]),
      otherActions(it.id, explained, refresh),
      it.receipts.length > 0 && [
        element("h2", {}, "Why it is invalid"),
        element("ul", {}, it.receipts.map((receipt) => element("li", {}, receipt.message)))],
      element("h2", {}, "History"),
      timeline(it));
  };
  return { main, load };
}

/** What can be done about the batch that an explained one waits for. */
export function otherActions(id, explained, refresh) {
  const others = explained.actions.filter((action) => !isAbout(action, id));
  return others.length > 0 && [
    element("h2", {}, "What can be done about the batch that it waits for"),
    element("div", { class: "buttons" }, others.map((action) => actionButton(action, explained.blocker?.attempts, refresh)))];
}

/** The events of a batch and what operators did, in order. */
export function timeline(it) {
  const events = it.history.map((event) => ({ at: event.at, event }));
  const actions = it.operator_actions.map((action) => ({ at: action.acted_at, action }));
  const entries = folded([...events, ...actions].sort((a, b) => a.at.localeCompare(b.at)));
  const time = (at) => element("time", { datetime: at, class: "muted" }, at.replace("T", " ").replace(/(\.\d{3})\d*Z/, "$1"));
  return element("ol", { class: "timeline" }, entries.map(({ at, event, action, repeated }) => repeated
    ? element("li", { class: "muted" }, `The same ${number(Math.ceil(repeated / 2))} times more, until `, time(at))
    : action
    ? element("li", { class: "operator" }, time(at), " ", element("b", {}, `${action.verb.replace(/_withdrawal$/, "").replaceAll("_", " ")} by ${action.actor}`),
      `: ${action.reason ?? "no reason"} (${action.changed.from} → ${action.changed.to})`)
    : element("li", {}, time(at), " ", element("b", {}, event.kind.replaceAll("_", " ")), " ", event.state && state(event.state),
      event.attempt ? `, attempt ${event.attempt}` : "", event.detail ? `: ${event.detail}` : "")));
}

/** Replaces tries with the same answers as the try before by their number. A try is two events. */
function folded(entries) {
  const same = (a, b) => a?.event && b?.event && ["kind", "state", "detail"].every((name) => a.event[name] === b.event[name]);
  const shown = [];
  entries.forEach((entry, at) => {
    const repeats = same(entry, entries[at - 2]) && (same(entries[at + 1], entries[at - 1]) || same(entries[at - 1], entries[at - 3]));
    if (!repeats) return shown.push(entry);
    const repeated = shown.at(-1).repeated ? shown.pop().repeated : 0;
    return shown.push({ at: entry.at, repeated: repeated + 1 });
  });
  return shown;
}
