// Withdrawals and other transactions on an EVM chain: what the gas admins have, lists with filters, and one with what it waits for,
// its result, and what can be done.

import { ago, batchLink, contains, element, facts, link, number, replace, serviceLink, state, table } from "../dom.js";
import { Problem, get, path } from "../server.js";
import { actionButton, buttonRow, isAbout } from "../verbs.js";
import { coins } from "../coins.js";
import { otherActions, timeline } from "./batch.js";
import { gasAdmins, grouped, pools, short } from "./gas.js";
import { pageLinks, searchForm, stateFilter, textFilter } from "./filters.js";

const OPEN_STATES = ["scheduled", "parked", "submitting", "in_doubt", "pending", "mined", "held"];
const SHOWN = 50;

/** What differs between the two kinds: all else is the same. */
const WITHDRAWALS = {
  name: "withdrawal",
  view: "withdrawals",
  path: "/withdrawals",
  title: "Withdrawals",
  notServed: "This server makes no withdrawals: it has no pools on an EVM chain.",
  states: [...OPEN_STATES, "withdrawn", "failed"],
  filters: { pool: "Pool contains", beneficiary: "Beneficiary contains", idempotency_key: "Idempotency key contains" },
  gas: (admins) => [element("h2", {}, "Gas price and caps"), pools(admins), element("h2", {}, "Gas admins"), gasAdmins(admins)],
  columns: [
    { name: "Amount", number: true, cell: (it) => grouped(it.amount) },
    { name: "Beneficiary", cell: (it) => short(it.beneficiary) },
  ],
  account: (it) => it.gas_admin,
  mined: (it) => it.final_transaction,
  facts: (it) => [
    ["Pool", address(it.pool)],
    ["Beneficiary", address(it.beneficiary)],
    ["Amount", grouped(it.amount)],
    ["Requested by", it.kind],
    ["Reward", it.reward_id && address(it.reward_id)],
    ["The pool's id", it.withdrawal_id],
    ["Correction", it.correction],
  ],
};
const TRANSACTIONS = {
  name: "transaction",
  view: "transactions",
  path: "/v1/transactions",
  title: "Transactions",
  notServed: "This server sends no transactions: it has no accounts on an EVM chain.",
  states: [...OPEN_STATES, "executed", "failed"],
  filters: { account: "Account contains", to: "To contains", label: "Label contains", idempotency_key: "Idempotency key contains" },
  gas: (admins) => [element("h2", {}, "Accounts"), gasAdmins(admins)],
  columns: [
    { name: "To", cell: (it) => it.to ? short(it.to) : "a new contract" },
    { name: "Value", number: true, cell: (it) => coins(it.value) },
    { name: "Label", cell: (it) => it.label ?? "" },
  ],
  account: (it) => it.account,
  mined: (it) => it.result,
  facts: (it) => [
    ["To", it.to ? address(it.to) : "a new contract"],
    ["Value", coins(it.value)],
    ["Data", it.data !== "0x" && data(it.data)],
    ["Label", it.label],
    ["Gas limit", it.gas_limit && number(it.gas_limit)],
    ["Highest gas price", it.maximum_gas_price_gwei && `${it.maximum_gas_price_gwei} gwei`],
    ["Deadline", it.deadline],
  ],
};

export const withdrawals = listOf(WITHDRAWALS);
export const withdrawal = detailsOf(WITHDRAWALS);
export const transactions = listOf(TRANSACTIONS);
export const transaction = detailsOf(TRANSACTIONS);

function listOf(kind) {
  return ({ main, parameters }) => {
    const given = Object.fromEntries([...Object.keys(kind.filters), "state"].map((name) => [name, parameters.get(name) ?? ""]));
    const before = parameters.get("before");
    const gas = element("div");
    const list = element("div");
    main.append(
      element("h1", {}, kind.title),
      gas,
      element("h2", {}, `Latest ${kind.view}`),
      searchForm(kind.view, given, `Id of a ${kind.name}`,
        Object.entries(kind.filters).map(([name, label]) => textFilter(given, name, label)), stateFilter(given, kind.states)),
      list);
    const load = async () => {
      const admins = await read("/v1/gas-admins");
      const page = admins && await read(kind.path, { ...filterOf(given, admins.data), before, limit: SHOWN });
      if (!page) {
        replace(main, element("h1", {}, kind.title), element("p", { class: "muted" }, kind.notServed));
        return;
      }
      replace(gas, kind.gas(admins.data));
      replace(list, page.refused ? element("p", { class: "notice bad", role: "alert" }, page.refused) : [
        tableOf(kind, page),
        pageLinks(kind.view, kind.view, given, "before", before, page.next),
      ]);
    };
    return { main, load };
  };
}

/** What the server is asked for. A whole address has an index; the name of an account is no part of its service. */
function filterOf({ state, ...texts }, admins) {
  const isWhole = (name, text) => name !== "idempotency_key" && name !== "label" && /^0x[0-9a-f]{40}$/i.test(text);
  const named = texts.account ? admins.filter((it) => contains(texts.account, it.name)) : [];
  const filter = ([name, text]) => {
    if (name === "account" && named.length === 1) return [name, named[0].name];
    return [isWhole(name, text) ? name : `${name}_contains`, text];
  };
  return { state, ...Object.fromEntries(Object.entries(texts).map(filter)) };
}

/** `null`: it is not served here. A filter that the server refuses is explained beside the form. */
async function read(path, parameters) {
  try {
    return await get(path, parameters);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 404) return null;
    if (error.status === 400) return { refused: error.message };
    throw error;
  }
}

function tableOf(kind, page) {
  return table(kind.title, [
    { name: kind.name[0].toUpperCase() + kind.name.slice(1), cell: (it) => link(it.id.slice(0, 12), kind.view, it.id) },
    { name: "State", cell: (it) => state(it.state) },
    ...kind.columns,
    { name: "Scheduled", cell: (it) => ago(it.created_at) },
    { name: "Block", number: true, cell: (it) => kind.mined(it) ? number(kind.mined(it).block) : "" },
    { name: "Why it waits or failed", text: true, cell: (it) => it.correction ?? it.fail_reason ?? it.waits_for ?? "" },
  ], page.data, page.next ? `None of the ${kind.view} examined so far matches.` : `There are no such ${kind.view}.`);
}

function detailsOf(kind) {
  return ({ main, id, refresh }) => {
    const load = async () => {
      const it = await get(`${kind.path}/${encodeURIComponent(id)}`);
      // The first characters of the id of its latest batch are its own id.
      const [batch, explained] = await Promise.all([get(path("batches", id)), get(path("batches", id, "explain"))]);
      const actions = explained.actions.filter((action) => isAbout(action, batch.id));
      const result = kind.mined(it);
      replace(main,
        element("h1", {}, `${kind.title.slice(0, -1)} `, element("span", { class: "id" }, it.id.slice(0, 12))),
        element("p", { class: "notice" }, explained.text),
        buttonRow(actions.map((action) => actionButton(action, batch.attempts, refresh))),
        facts([
          ["Id", address(it.id)],
          ["State", state(it.state)],
          ["Account", serviceLink(kind.account(it))],
          ...kind.facts(it),
          ["Idempotency key", it.idempotency_key],
          ["Scheduled", element("span", {}, ago(it.created_at), ` (${it.created_at})`)],
          ["Cancellation requested", it.cancelled_at],
          ["Ended", it.ended_at],
          ["Attempts", number(it.attempts)],
          ["Behind the batch", explained.blocker && batchLink(explained.blocker.id, explained.blocker.service_id)],
          ["Batch", batchLink(batch.id, batch.service_id)],
        ]),
        otherActions(batch.id, explained, refresh),
        result && [element("h2", {}, "Result"), results(result)],
        it.transactions.length > 0 && [element("h2", {}, "What was signed"), signed(it.transactions)],
        element("h2", {}, "History"),
        timeline(batch));
    };
    return { main, load };
  };
}

function results(result) {
  return [
    facts([
      ["Transaction", address(result.hash)],
      ["Block", number(result.block)],
      ["Gas used", result.gas_used && number(result.gas_used)],
      ["Gas price", result.gas_price_gwei && `${result.gas_price_gwei} gwei`],
      ["Fee", result.fee_ether && `${result.fee_ether} ether`],
      ["New contract", result.contract && address(result.contract)],
      ["Note", result.note],
    ]),
    result.events?.length > 0 && table("Events", [
      { name: "Event", cell: (it) => it.name ?? "not declared" },
      { name: "Contract", cell: (it) => address(it.address) },
      { name: "Values", text: true, cell: (it) => it.values
        ? facts(Object.entries(it.values).map(([name, value]) => [name, address(value)]))
        : [it.topics.map((topic) => [address(topic), " "]), it.data !== "0x" && data(it.data)] },
    ], result.events, ""),
  ];
}

function signed(transactions) {
  return table("What was signed", [
    { name: "Nonce", cell: (it) => it.nonce },
    { name: "Hash", cell: (it) => address(it.hash) },
    { name: "Highest fee in gwei", number: true, cell: (it) => it.max_fee_gwei },
    { name: "For", cell: (it) => it.cancels ? "the cancellation" : it.adopted ? "found on the chain" : "execution" },
    { name: "Sent", cell: (it) => it.sent_at ? ago(it.sent_at) : "not sent" },
    { name: "Last error", text: true, cell: (it) => it.last_error ?? "" },
  ], transactions, "");
}

/** An address, a hash or an id. */
function address(text) {
  return element("span", { class: "id" }, text);
}

/** Bytes; long ones are folded. */
function data(hex) {
  const SHORT = 138;
  if (hex.length <= SHORT) return address(hex);
  return element("details", {}, element("summary", {}, `${number((hex.length - 2) / 2)} bytes`), address(hex));
}
