// What an operator can do: each verb asks for a reason, shows what it would change, and is confirmed.

import { may } from "./access.js";
import { button, element, replace } from "./dom.js";
import { Problem, get, path, post, withQuery } from "./server.js";

export const dialog = document.getElementById("dialog");

/** The names of the verbs, and their paths. */
const OF_BATCHES = {
  retry: ["Try now", "retry"],
  resubmit: ["Send again", "resubmit"],
  end_committed: ["End as committed", "end", { as: "committed" }],
  end_invalid: ["End as invalid", "end", { as: "invalid" }],
  cancel: ["Cancel", "cancel"],
  hold: ["Hold", "hold"],
  release: ["Release", "release"],
  continue: ["Continue after it", "continue"],
  end_following: ["End what follows", "end-following"],
};
const DECIDE_ATTEMPT = ["resubmit", "end_committed", "end_invalid"];
/** Nothing brings back what these end. */
export const DANGEROUS = ["cancel", "end_committed", "end_invalid", "end_following"];
/** The kinds of what is queued, and where their verbs are. The server says which verbs it takes. */
const OF_QUEUED = {
  withdrawal_id: ["withdrawal", (id, verb) => `/withdrawals/${encodeURIComponent(id)}/${encodeURIComponent(verb)}`],
  transaction_id: ["transaction", (id, verb) => path("transactions", id, verb)],
};
const OF_SERVICES = {
  pause: ["Pause", (id) => path("services", id, "pause")],
  resume: ["Resume", (id) => path("services", id, "resume")],
  release_claim: ["Release the claim", (id) => path("claims", id, "release")],
};

/** A button for an action that the server names: {verb, text}, and batch_id, withdrawal_id, transaction_id or service_id; otherwise it is about all services. */
export function actionButton(action, attempt, done) {
  const queued = Object.keys(OF_QUEUED).find((key) => action[key]);
  if (queued) return queuedButton(...OF_QUEUED[queued], action.verb, action[queued], action.text, done);
  if (action.batch_id) return batchButton(action.verb, action.batch_id, action.service_id, attempt, action.text, done);
  if (!action.service_id) return allServicesButton(action.verb, action.text, done);
  return serviceButton(action.verb, action.service_id, action.text, done);
}

/** Whether an action is about a batch, about its withdrawal or transaction, or about its service. */
export function isAbout(action, batchId) {
  // The id of a withdrawal or transaction is the beginning of the ids of its batches.
  return batchId.startsWith(action.batch_id ?? action.withdrawal_id ?? action.transaction_id ?? "");
}

/** Buttons in a row; those of dangerous verbs stand apart at its end. */
export function buttonRow(...buttons) {
  const shown = buttons.flat(Infinity).filter(Boolean);
  const isDangerous = (it) => it.classList.contains("danger");
  const apart = shown.filter(isDangerous);
  return element("div", { class: "buttons" }, shown.filter((it) => !isDangerous(it)),
    apart.length > 0 && element("div", { class: "buttons apart" }, apart));
}

export function batchButton(verb, id, service, attempt, text, done) {
  const [name, part, more] = OF_BATCHES[verb] ?? [];
  if (!name || !may("operate", service) || (DECIDE_ATTEMPT.includes(verb) && attempt === undefined)) return null;
  const url = withQuery(path("batches", id, part), { service_id: service });
  const fields = { ...more, ...(DECIDE_ATTEMPT.includes(verb) ? { attempt } : {}) };
  return verbButton(verb, name, `the batch ${id.slice(0, 12)}`, text, url, fields, `${verb} ${id}`, done);
}

function queuedButton(kind, url, verb, id, text, done) {
  if (!may(verb === "retry" ? "operate" : "submit")) return null;
  const name = `${verb[0].toUpperCase()}${verb.slice(1).replaceAll("-", " ")}`;
  return verbButton(verb, name, `the ${kind} ${id.slice(0, 12)}`, text, url(id, verb), {}, `${verb} ${id}`, done);
}

export function serviceButton(verb, id, text, done) {
  const [name, url] = OF_SERVICES[verb] ?? [];
  return name && may("operate", id) ? verbButton(verb, name, `the service ${id}`, text, url(id), {}, `${verb} ${id}`, done) : null;
}

export function allServicesButton(verb, text, done) {
  if (!may("operate")) return null;
  const name = verb === "pause" ? "Pause all" : "Resume all";
  return verbButton(verb, name, "all services", text, path(verb), {}, `${verb} all`, done);
}

export function instanceButton(verb, id, label, text, done) {
  if (!may("operate")) return null;
  const name = verb === "drain" ? "Drain" : "End the drain";
  return verbButton(verb, name, `the instance ${label}`, text, path("instances", id, verb), {}, `${verb} ${id}`, done);
}

/** Sends again what a webhook has not got. */
export function redeliverButton(id, url, done) {
  return verbButton("redeliver", "Deliver now", `the webhook ${url}`, "messages that were given up are sent again, and what waits is tried now", path("webhooks", id, "redeliver"), {}, `redeliver ${id}`, done);
}

/** Opens a list of what can be done about a batch, with what each does. */
export function decideButton(batch, done) {
  if (!may("operate", batch.service_id)) return null;
  return button("Decide …", `decide ${batch.id}`, () => decide(batch, done), { "aria-haspopup": "dialog" });
}

async function decide(batch, done) {
  const close = button("Do nothing", "close", () => dialog.close());
  const body = element("div", {}, element("p", { class: "muted" }, "Loading …"));
  showDialog(element("div", {}, element("h2", { id: "dialog-title" }, `The batch ${batch.id.slice(0, 12)}`), body, element("div", { class: "buttons" }, close)), close);
  try {
    const explained = await get(path("batches", batch.id, "explain"), { service_id: batch.service_id });
    const actions = explained.actions.filter((action) => isAbout(action, batch.id));
    const isDangerous = (action) => DANGEROUS.includes(action.verb);
    actions.sort((a, b) => isDangerous(a) - isDangerous(b));
    const choices = actions.map((action) => [actionButton(action, explained.batch.attempts, done), action.text]).filter(([it]) => it);
    replace(body,
      element("p", { class: "notice" }, explained.text),
      choices.length === 0 && element("p", {}, "Nothing can be done about it now."),
      element("ul", { class: "choices" }, choices.map(([it, text]) => element("li", { class: it.classList.contains("danger") ? "apart" : null }, it, element("span", {}, text)))));
  } catch (error) {
    replace(body, element("p", { class: "notice bad" }, explain(error)));
  }
}

function verbButton(verb, name, target, text, url, fields, key, done) {
  const isDangerous = DANGEROUS.includes(verb);
  const onclick = () => ask({ name, target, text, url, fields, done, isDangerous });
  return button(name, key, onclick, { "aria-haspopup": "dialog", class: isDangerous ? "danger" : null });
}

export function reasonField() {
  return element("textarea", { id: "reason", required: true, rows: "3", maxlength: "1000", autocomplete: "off" });
}

/** Shows a dialog, in place of the present one. */
export function showDialog(content, focused) {
  replace(dialog, content);
  if (!dialog.open) dialog.showModal();
  focused.focus();
}

function ask({ name, target, text, url, fields, done, isDangerous }) {
  const reason = reasonField();
  const outcome = element("div", { role: "status" });
  const send = async (dryRun) => {
    if (!form.reportValidity()) return;
    try {
      const answer = await post(url, { ...fields, reason: reason.value, dry_run: dryRun });
      const change = described(answer);
      if (dryRun) {
        replace(outcome, element("p", { class: "notice" }, answer.changed ? `It would change: ${change}` : `It is possible; ${change}`));
        return;
      }
      dialog.close();
      announce(`${name}, ${target}: ${change}`);
      await done?.();
    } catch (error) {
      replace(outcome, element("p", { class: "notice bad" }, explain(error)));
    }
  };
  const form = element("form", { method: "dialog", onsubmit: (event) => { event.preventDefault(); send(false); } },
    element("h2", { id: "dialog-title" }, `${name}: ${target}`),
    text && element("p", {}, `${text[0].toUpperCase()}${text.slice(1)}.`),
    element("label", { for: "reason" }, "Reason, for the log of operators", reason),
    outcome,
    element("div", { class: "buttons" },
      element("button", { type: "submit", class: isDangerous ? "danger" : "primary", id: "confirm" }, name),
      button("What would it change?", "dry-run", () => send(true), { id: "dry-run" }),
      button("Do nothing", "close", () => dialog.close())));
  showDialog(form, reason);
}

/** What an answer says has changed. What is queued is answered as it is then. */
function described(answer) {
  if (answer.changed) return `${answer.changed.from} → ${answer.changed.to}`;
  if (answer.messages !== undefined) return `${answer.messages} messages that were given up`;
  return `the state is ${answer.state.replaceAll("_", " ")}`;
}

/** An error as a sentence. */
export function explain(error) {
  if (error instanceof Problem && error.status === 403) return `Not allowed: ${error.message}`;
  if (error instanceof Problem) return error.message;
  return `The server cannot be reached: ${error.message}`;
}

export function announce(text) {
  const place = document.getElementById("announcements");
  place.textContent = text;
  setTimeout(() => { if (place.textContent === text) place.textContent = ""; }, 6000);
}
