// The batches that wait for a decision, and the decisions.

import { ago, element, replace, batchLink, number, serviceLink, state, table } from "../dom.js";
import { get, getIfAllowed } from "../server.js";
import { mayForSome } from "../access.js";
import { Selection, manyBar } from "../many.js";
import { decideButton } from "../verbs.js";
import { pageLinks } from "./filters.js";

export function held({ main, parameters, refresh }) {
  const after = parameters.get("after");
  const selection = new Selection();
  let page = null;
  let out = [];
  const show = () => {
    const operates = mayForSome("operate");
    replace(main,
      element("h1", {}, "Held batches"),
      element("p", { class: "muted" }, "A held batch waits for an operator, and later batches of its service wait for it. Look at the ledger before you decide: a batch that is ended wrongly is lost or applied out of order."),
      out.length > 0 && element("p", { class: "notice bad" },
        `Not every node answers: ${out.map((node) => node.url).join(", ")}. Until it does, what the ledger did is a guess.`),
      page.data.length > 0 && manyBar(selection, { held: "true" }, refresh, "held"),
      table("Held batches", [
        ...(operates ? [selection.column(page.data, show)] : []),
        { name: "Batch", cell: (it) => batchLink(it.id, it.service_id) },
        { name: "Service", cell: (it) => serviceLink(it.service_id) },
        { name: "State", cell: (it) => state(it.state) },
        { name: "Held", cell: (it) => ago(it.held?.since) },
        { name: "Attempt", number: true, cell: (it) => number(it.attempts) },
        { name: "Why", text: true, cell: (it) => it.held?.reason ?? "" },
        ...(operates ? [{ name: "Decision", cell: (it) => decideButton(it, refresh) }] : []),
      ], page.data, "No batch is held."),
      pageLinks("held", "held batches", {}, "after", after, page.next, ["Later", "The oldest"]));
  };
  const load = async () => {
    const [read, ledgers] = await Promise.all([
      get("/v1/batches", { held: "true", order: "oldest", limit: 100, after }), getIfAllowed("/v1/ledgers"),
    ]);
    page = read;
    out = (ledgers?.data ?? []).flatMap((ledger) => ledger.nodes.filter((node) => !node.answering));
    show();
  };
  return { main, load };
}
