// What is in a batch: its signers, the headers of its transactions, and their payloads.

import { element, facts, number } from "../dom.js";

/** A payload is shown as text if all of it is printable. */
const PRINTABLE = /^[\t\n\r\u0020-\u007e\u00a0-\uffff]*$/;

export function contentOf(content) {
  if (!content.signer) return null;
  return element("section", {},
    element("h2", {}, "Content"),
    facts([
      ["Signer", element("span", { class: "id" }, content.signer)],
      ["Size", `${number(content.size)} bytes, ${number(content.count)} ${content.count === 1 ? "transaction" : "transactions"}`],
    ]),
    content.transactions.map((it, at) => transaction(it, content, at === 0)),
    content.count > content.transactions.length &&
      element("p", { class: "muted" }, `Only the first ${content.transactions.length} transactions are shown.`));
}

function transaction(it, content, isOpen) {
  return element("details", { class: "transaction", open: isOpen },
    element("summary", {}, it.family, " ", element("span", { class: "id" }, it.id.slice(0, 12)), ` ${number(it.payload_size)} bytes`),
    facts([
      ["Transaction", element("span", { class: "id" }, it.id)],
      ["Family", it.family],
      ["Signer", it.signer === content.signer ? "that of the batch" : element("span", { class: "id" }, it.signer)],
      ["Inputs", addresses(it.inputs)],
      ["Outputs", addresses(it.outputs)],
      ["Depends on", addresses(it.dependencies)],
      ["Nonce", it.nonce],
      ["Payload", payload(it)],
    ]));
}

function addresses(list) {
  const ids = list.map((address) => element("div", { class: "id" }, address));
  if (ids.length <= 3) return ids.length > 0 && element("div", {}, ids);
  return element("details", {}, element("summary", {}, `${number(ids.length)}`), ids);
}

function payload(it) {
  const bytes = Uint8Array.from(atob(it.payload), (character) => character.charCodeAt(0));
  const more = it.payload_size > bytes.length ? `, the first ${number(bytes.length)} of ${number(it.payload_size)} bytes` : "";
  if (bytes.length === 0) return "empty";
  const [form, shown] = shownPayload(it, bytes);
  return element("div", {}, element("span", { class: "muted" }, `${form}${more}`),
    element("pre", { tabindex: "0", "aria-label": "Payload" }, shown));
}

/** What its bytes are, and how they are shown. */
function shownPayload(it, bytes) {
  const text = asText(bytes);
  if (text !== null) return ["text", text];
  return it.payload_json ? ["CBOR, as JSON", JSON.stringify(it.payload_json, null, 2)] : ["bytes", asBytes(bytes)];
}

function asText(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!PRINTABLE.test(text)) return null;
    return /^\s*[{[]/.test(text) ? pretty(text) : text;
  } catch {
    return null;
  }
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Lines of 16 bytes: their place, their digits, and what is printable of them. */
function asBytes(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const part = [...bytes.subarray(at, at + 16)];
    const digits = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(48);
    const text = part.map((byte) => byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".").join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${digits} ${text}`);
  }
  return lines.join("\n");
}
