// One batch: its history, why it waits, what is in it, and what can be done.

import { ago, batchLink, element, facts, link, number, replace, serviceLink, state } from "../dom.js";
import { get, path } from "../server.js";
import { actionButton, batchButton, buttonRow, isAbout } from "../verbs.js";
import { batchState } from "./batches.js";
import { contentOf } from "./content.js";

export function batch({ main, id, parameters, refresh }) {
  const service = parameters.get("service") ?? undefined;
  // What was submitted never changes.
  let content = null;
  const load = async () => {
    const of = { service_id: service };
    const [it, explained] = await Promise.all([get(path("batches", id), of), get(path("batches", id, "explain"), of)]);
    content ??= contentOf(await get(path("batches", id, "content"), of));
    const isOpen = !it.ended_at;
    const actions = explained.actions.filter((action) => isAbout(action, it.id));
    const has = (verb) => actions.some((action) => action.verb === verb);
    replace(main,
      element("h1", {}, "Batch ", element("span", { class: "id" }, it.id.slice(0, 12))),
      element("p", { class: "notice" }, explained.text),
      buttonRow(
        actions.map((action) => actionButton(action, it.attempts, refresh)),
        isOpen && !it.held && !has("hold") && batchButton("hold", it.id, it.service_id, it.attempts, "it is not sent, or not sent again, before it is released or decided", refresh)),
      facts([
        ["Id", element("span", { class: "id" }, it.id)],
        ["Service", serviceLink(it.service_id)],
        ["Withdrawal", explained.withdrawal && link(explained.withdrawal.id.slice(0, 12), "withdrawals", explained.withdrawal.id)],
        ["Transaction", explained.transaction && link(explained.transaction.id.slice(0, 12), "transactions", explained.transaction.id)],
        ["State", batchState(it)],
        ["Held", it.held && element("span", {}, ago(it.held.since), `: ${it.held.reason}`)],
        ["Label", it.label],
        ["Attempts", number(it.attempts)],
        ["Stored", element("span", {}, ago(it.stored_at), ` (${it.stored_at})`)],
        ["Last error", it.last_error],
        ["Next try", it.next_try_at],
        ["Before it", explained.position && `${number(explained.position.ahead)}${explained.position.more_ahead ? " or more" : ""} batches of its service`],
        ["Waits for", explained.blocker && batchLink(explained.blocker.id, it.service_id)],
      ]),
      otherActions(it.id, explained, refresh),
      it.receipts.length > 0 && [
        element("h2", {}, "Why it is invalid"),
        element("ul", {}, it.receipts.map((receipt) => element("li", {}, receipt.message)))],
      content,
      element("h2", {}, "History"),
      timeline(it));
  };
  return { main, load };
}

/** What can be done about the batch that an explained one waits for. */
export function otherActions(id, explained, refresh) {
  const others = explained.actions.filter((action) => !isAbout(action, id));
  const buttons = others.map((action) => actionButton(action, explained.blocker?.attempts, refresh)).filter(Boolean);
  return buttons.length > 0 && [element("h2", {}, "What can be done about the batch that it waits for"), buttonRow(buttons)];
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
