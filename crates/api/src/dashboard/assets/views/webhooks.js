// The webhooks: what each has not delivered, and why.

import { ago, element, facts, link, number, replace, state, table } from "../dom.js";
import { get, path } from "../server.js";
import { buttonRow, redeliverButton } from "../verbs.js";
import { pageLinks } from "./filters.js";

function stateOf(it) {
  if (it.disabled_at) return state("stopped");
  if (it.attempts > 0) return state("failing");
  return state("running");
}

function selected(list, all) {
  return list.length > 0 ? list.map((name) => name.replaceAll("_", " ")).join(", ") : all;
}

/** How many events wait: all of them, or as many as are counted. */
function waiting(it) {
  return it.more_waiting ? `at least ${number(it.waiting)}` : number(it.waiting);
}

export function webhooks({ main }) {
  const load = async () => {
    const read = await get("/v1/webhooks");
    replace(main,
      element("h1", {}, "Webhooks"),
      table("Webhooks", [
        { name: "Webhook", cell: (it) => element("span", {}, link(it.url, "webhooks", it.id)) },
        { name: "State", cell: stateOf },
        { name: "Events", cell: (it) => selected(it.kinds, "all") },
        { name: "Services", cell: (it) => selected(it.services, "all") },
        { name: "Waiting", number: true, cell: waiting },
        { name: "Failed tries of the next event", number: true, cell: (it) => number(it.attempts) },
        { name: "Given up", number: true, cell: (it) => number(it.failed) },
        { name: "Last error", text: true, cell: (it) => it.last_error ?? "" },
      ], read.data, "There are no webhooks."));
  };
  return { main, load };
}

export function webhook({ main, id, parameters, refresh }) {
  const after = parameters.get("after");
  const load = async () => {
    const [it, failed] = await Promise.all([get(path("webhooks", id)), get(path("webhooks", id, "failed"), { limit: 100, after })]);
    replace(main,
      element("h1", {}, "Webhook ", element("span", { class: "id" }, it.url)),
      buttonRow((it.failed > 0 || it.attempts > 0 || it.disabled_at) && redeliverButton(id, it.url, refresh)),
      facts([
        ["State", stateOf(it)],
        ["Disabled", it.disabled_at && element("span", {}, ago(it.disabled_at), ": the receiver answered that it is gone")],
        ["Events", selected(it.kinds, "all")],
        ["Services", selected(it.services, "all")],
        ["Created", ago(it.created_at)],
        ["Events that wait", waiting(it)],
        ["Failed tries of the next event", it.attempts > 0 && number(it.attempts)],
        ["Next try", it.next_try_at],
        ["Last error", it.last_error],
        ["Events removed before delivery", it.missed_at && ago(it.missed_at)],
      ]),
      element("h2", {}, "Messages that were given up"),
      table("Messages that were given up", [
        { name: "Message", cell: (message) => element("span", { class: "id" }, message.message_id) },
        { name: "Given up", cell: (message) => ago(message.failed_at) },
        { name: "Tries", number: true, cell: (message) => number(message.attempts) },
        { name: "Sent again", cell: (message) => message.again ? "soon" : "no" },
        { name: "Error", text: true, cell: (message) => message.error },
      ], failed.data, "None."),
      pageLinks(`webhooks/${encodeURIComponent(id)}`, "messages", {}, "after", after, failed.next, ["Later", "The oldest"]));
  };
  return { main, load };
}
