// What an operator can do: each verb asks for a reason, shows what it would change, and is confirmed.

import { button, element, replace } from "./dom.js";
import { Problem, path, post, withQuery } from "./server.js";

const dialog = document.getElementById("dialog");

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

/** A button for an action that the server names: {verb, text}, and batch_id, withdrawal_id, transaction_id or service_id. */
export function actionButton(action, attempt, done) {
  const queued = Object.keys(OF_QUEUED).find((key) => action[key]);
  if (queued) return queuedButton(...OF_QUEUED[queued], action.verb, action[queued], action.text, done);
  if (action.batch_id) return batchButton(action.verb, action.batch_id, action.service_id, attempt, action.text, done);
  return serviceButton(action.verb, action.service_id, action.text, done);
}

/** Whether an action is about a batch, about its withdrawal or transaction, or about its service. */
export function isAbout(action, batchId) {
  // The id of a withdrawal or transaction is the beginning of the ids of its batches.
  return batchId.startsWith(action.batch_id ?? action.withdrawal_id ?? action.transaction_id ?? "");
}

export function batchButton(verb, id, service, attempt, text, done) {
  const [name, part, more] = OF_BATCHES[verb] ?? [];
  if (!name || (DECIDE_ATTEMPT.includes(verb) && attempt === undefined)) return null;
  const url = withQuery(path("batches", id, part), { service_id: service });
  const fields = { ...more, ...(DECIDE_ATTEMPT.includes(verb) ? { attempt } : {}) };
  return verbButton(name, `the batch ${id.slice(0, 12)}`, text, url, fields, `${verb} ${id}`, done);
}

function queuedButton(kind, url, verb, id, text, done) {
  const name = `${verb[0].toUpperCase()}${verb.slice(1).replaceAll("-", " ")}`;
  return verbButton(name, `the ${kind} ${id.slice(0, 12)}`, text, url(id, verb), {}, `${verb} ${id}`, done);
}

export function serviceButton(verb, id, text, done) {
  const [name, url] = OF_SERVICES[verb] ?? [];
  return name ? verbButton(name, `the service ${id}`, text, url(id), {}, `${verb} ${id}`, done) : null;
}

export function allServicesButton(verb, text, done) {
  const name = verb === "pause" ? "Pause all" : "Resume all";
  return verbButton(name, "all services", text, path(verb), {}, `${verb} all`, done);
}

export function instanceButton(verb, id, label, text, done) {
  const name = verb === "drain" ? "Drain" : "End the drain";
  return verbButton(name, `the instance ${label}`, text, path("instances", id, verb), {}, `${verb} ${id}`, done);
}

function verbButton(name, target, text, url, fields, key, done) {
  return button(name, key, () => ask({ name, target, text, url, fields, done }), { "aria-haspopup": "dialog" });
}

/** Shows the dialog. */
function ask({ name, target, text, url, fields, done }) {
  const reason = element("textarea", { id: "reason", required: true, rows: "3", maxlength: "1000", autocomplete: "off" });
  const outcome = element("div", { role: "status" });
  const send = async (dryRun) => {
    if (!form.reportValidity()) return;
    try {
      const answer = await post(url, { ...fields, reason: reason.value, dry_run: dryRun });
      // What is queued is answered as it is then.
      const change = answer.changed ? `${answer.changed.from} → ${answer.changed.to}` : answer.state.replaceAll("_", " ");
      if (dryRun) {
        replace(outcome, element("p", { class: "notice" }, answer.changed ? `It would change: ${change}` : `It is possible; the state is ${change}`));
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
      element("button", { type: "submit", class: "primary", id: "confirm" }, name),
      button("What would it change?", "dry-run", () => send(true), { id: "dry-run" }),
      button("Do nothing", "close", () => dialog.close())));
  replace(dialog, form);
  dialog.showModal();
  reason.focus();
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
