// A verb about many batches: what it would change is shown before, and only that is changed.

import { may, mayForSome } from "./access.js";
import { batchLink, button, element, number, replace, serviceLink, table } from "./dom.js";
import { get, post } from "./server.js";
import { DANGEROUS, announce, dialog, explain, reasonField, showDialog } from "./verbs.js";

/** How many batches a request names at most. */
const MOST = 1000;
const VERBS = [
  ["hold", "Hold"], ["release", "Release"], ["retry", "Try now"], ["resubmit", "Send again"],
  ["cancel", "Cancel"], ["end_committed", "End as committed"], ["end_invalid", "End as invalid"],
];

/** What a batch that is sent again does at the ledger cannot be undone either. */
const FINAL = [...DANGEROUS, "resubmit"];

/** The chosen batches of a list, which it keeps while it is read again. */
export class Selection {
  #chosen = new Map();

  get size() {
    return this.#chosen.size;
  }

  get batches() {
    return [...this.#chosen.values()];
  }

  clear() {
    this.#chosen.clear();
  }

  #set(row, isChosen) {
    const key = `${row.service_id} ${row.id}`;
    if (isChosen) this.#chosen.set(key, row);
    else this.#chosen.delete(key);
  }

  #has(row) {
    return this.#chosen.has(`${row.service_id} ${row.id}`);
  }

  /** The column with the boxes of open batches; `changed` is called after each change. */
  column(rows, changed) {
    const open = rows.filter((row) => !row.ended_at && may("operate", row.service_id));
    const box = (checked, label, key, onchange) =>
      element("input", { type: "checkbox", checked, "aria-label": label, "data-key": key, onchange });
    const all = box(open.length > 0 && open.every((row) => this.#has(row)), "Choose all open batches of this page", "choose all", ({ target }) => {
      open.forEach((row) => this.#set(row, target.checked));
      changed();
    });
    return {
      name: "Choose",
      box: true,
      head: all,
      cell: (row) => open.includes(row) && box(this.#has(row), `Choose the batch ${row.id.slice(0, 12)}`, `choose ${row.id}`, ({ target }) => {
        this.#set(row, target.checked);
        changed();
      }),
    };
  }
}

/** The controls above a list. `filter` has the parameters that select all batches of the list. */
export function manyBar(selection, filter, done, all = "open that match") {
  if (!mayForSome("operate")) return null;
  const start = (batches) => ask(batches, () => { selection.clear(); return done(); });
  return element("div", { class: "buttons many" },
    button(selection.size ? `Act on the ${number(selection.size)} chosen …` : "Act on the chosen …", "act on chosen",
      () => start(selection.batches), { disabled: selection.size === 0, "aria-haspopup": "dialog" }),
    button(`Act on all ${all} …`, "act on all", async () => start(await openBatches(filter)), { "aria-haspopup": "dialog" }));
}

/** Up to as many open batches as a request can name, the oldest first. */
async function openBatches(filter) {
  const found = [];
  let after;
  do {
    const page = await get("/v1/batches", { ...filter, state: openStates(filter.state), order: "oldest", limit: MOST - found.length, after });
    found.push(...page.data);
    after = page.next;
  } while (after && found.length < MOST);
  return found;
}

function openStates(state) {
  return state && !["invalid", "committed", "ended"].includes(state) ? state : "open";
}

function ask(batches, done) {
  const options = (isFinal) => VERBS.filter(([name]) => FINAL.includes(name) === isFinal)
    .map(([name, text]) => element("option", { value: name }, text));
  const verb = element("select", { id: "verb", onchange: () => preview() }, options(false),
    element("optgroup", { label: "Cannot be undone" }, options(true)));
  const reason = reasonField();
  const outcome = element("div", { role: "status" });
  const confirm = element("button", { type: "submit", class: "primary", id: "confirm", disabled: true }, "Confirm");
  const request = (targets, dryRun) => post("/v1/batches/actions", {
    verb: verb.value, dry_run: dryRun, reason: dryRun ? "preview" : reason.value,
    batches: targets.map((it) => ({ service_id: it.service_id, batch_id: it.batch_id ?? it.id, attempt: it.attempt ?? it.attempts })),
  });
  let possible = [];
  const preview = async () => {
    confirm.disabled = true;
    confirm.className = FINAL.includes(verb.value) ? "danger" : "primary";
    if (batches.length === 0) {
      replace(outcome, element("p", { class: "notice" }, "No open batch matches."));
      return;
    }
    try {
      const asked = verb.value;
      const answer = await request(batches, true);
      if (asked !== verb.value) return;
      possible = answer.data;
      confirm.disabled = possible.length === 0;
      confirm.textContent = `${VERBS.find(([name]) => name === asked)[1]}: ${number(possible.length)} batches`;
      replace(outcome, summary(answer));
    } catch (error) {
      replace(outcome, element("p", { class: "notice bad" }, explain(error)));
    }
  };
  const send = async (event) => {
    event.preventDefault();
    if (!form.reportValidity() || possible.length === 0) return;
    confirm.disabled = true;
    try {
      const answer = await request(possible, false);
      dialog.close();
      announce(`${number(answer.data.length)} batches changed${answer.refused.length ? `, ${number(answer.refused.length)} refused` : ""}`);
      await done();
    } catch (error) {
      confirm.disabled = false;
      replace(outcome, element("p", { class: "notice bad" }, explain(error)));
    }
  };
  const form = element("form", { method: "dialog", onsubmit: send },
    element("h2", { id: "dialog-title" }, `Act on ${number(batches.length)} batches`),
    batches.length === MOST && element("p", { class: "notice" }, `Only the oldest ${number(MOST)} at once.`),
    element("label", { for: "verb" }, "What to do", verb),
    outcome,
    element("label", { for: "reason" }, "Reason, for the log of operators", reason),
    element("div", { class: "buttons" }, confirm, button("Do nothing", "close", () => dialog.close())));
  showDialog(form, verb);
  preview();
}

/** What would change, by kind, and why the others are refused. */
function summary({ data, refused }) {
  const changes = tally(data, (it) => `${it.changed.from} → ${it.changed.to}`);
  const reasons = tally(refused, (it) => it.reason);
  const line = ([text, count]) => element("li", {}, element("b", {}, number(count)), ` ${text}`);
  return [
    element("p", {}, data.length ? "It would change:" : "It would change nothing."),
    data.length > 0 && element("ul", {}, changes.map(line)),
    refused.length > 0 && [element("p", {}, "It is refused for:"), element("ul", {}, reasons.map(line))],
    data.length > 0 && element("details", {}, element("summary", {}, "Which batches"),
      table("Batches that would change", [
        { name: "Batch", cell: (it) => batchLink(it.batch_id, it.service_id) },
        { name: "Service", cell: (it) => serviceLink(it.service_id) },
      ], data.slice(0, 100), ""),
      data.length > 100 && element("p", { class: "muted" }, `and ${number(data.length - 100)} more`)),
  ];
}

function tally(items, textOf) {
  const counts = new Map();
  items.forEach((item) => counts.set(textOf(item), (counts.get(textOf(item)) ?? 0) + 1));
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 8);
}
