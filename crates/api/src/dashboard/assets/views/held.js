// The batches that wait for a decision, and the decisions.

import { ago, batchLink, element, number, replace, serviceLink, state, table } from "../dom.js";
import { get, getIfAllowed } from "../server.js";
import { batchButton } from "../verbs.js";

const DECISIONS = [
  ["release", "end the hold; the ordinary rules apply, which may hold it again"],
  ["resubmit", "send it again, because the ledger does not have it and will not receive it later"],
  ["end_committed", "end it as committed, because the ledger has applied it"],
  ["end_invalid", "end it as invalid, because the ledger has rejected it for good, or it is not to be sent"],
];

/** While a node does not answer, what the ledger did would be a guess: the page of a batch tells whether it depends on it. */
const NO_GUESS = ["release"];

export function held({ main, refresh }) {
  const load = async () => {
    const [page, ledgers] = await Promise.all([
      get("/v1/batches", { held: "true", order: "oldest", limit: 200 }), getIfAllowed("/v1/ledgers"),
    ]);
    const out = (ledgers?.data ?? []).flatMap((ledger) => ledger.nodes.filter((node) => !node.answering));
    const decisions = DECISIONS.filter(([verb]) => out.length === 0 || NO_GUESS.includes(verb));
    replace(main,
      element("h1", {}, "Held batches"),
      element("p", { class: "muted" }, "A held batch waits for an operator, and later batches of its service wait for it. Look at the ledger before you decide: a batch that is ended wrongly is lost or applied out of order."),
      out.length > 0 && element("p", { class: "notice bad" },
        `Not every node answers: ${out.map((node) => node.url).join(", ")}. Until it does, decide at the page of a batch, which tells what can be known.`),
      table("Held batches", [
        { name: "Batch", cell: (it) => batchLink(it.id, it.service_id) },
        { name: "Service", cell: (it) => serviceLink(it.service_id) },
        { name: "State", cell: (it) => state(it.state) },
        { name: "Held", cell: (it) => ago(it.held?.since) },
        { name: "Attempt", number: true, cell: (it) => number(it.attempts) },
        { name: "Why", text: true, cell: (it) => it.held?.reason ?? "" },
        { name: "Decisions", cell: (it) => element("div", { class: "buttons" }, decisions.map(([verb, text]) =>
          batchButton(verb, it.id, it.service_id, it.attempts, text, refresh))) },
      ], page.data, "No batch is held."),
      page.next && element("p", { class: "muted" }, "There are more held batches; decide about these first."));
  };
  return { main, load };
}
