// On an EVM chain: the gas price against the caps, the gas admins, and the withdrawals.

import { ago, batchLink, element, number, replace, state, table } from "../dom.js";
import { Problem, get } from "../server.js";

export function withdrawals({ main }) {
  const load = async () => {
    let admins;
    try {
      admins = await get("/v1/gas-admins");
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
      replace(main, element("h1", {}, "Withdrawals"), element("p", { class: "muted" }, "This server makes no withdrawals: it has no pools on an EVM chain."));
      return;
    }
    const page = await get("/withdrawals", { limit: 100 });
    replace(main,
      element("h1", {}, "Withdrawals"),
      element("h2", {}, "Gas price and caps"),
      pools(admins.data),
      element("h2", {}, "Gas admins"),
      gasAdmins(admins.data),
      element("h2", {}, "Latest withdrawals"),
      list(page.data));
  };
  return { main, load };
}

function pools(admins) {
  const rows = admins.flatMap((admin) => admin.pools.map((pool) => ({ admin, pool })));
  return table("Pools", [
    { name: "Pool", cell: ({ pool }) => element("span", { class: "id" }, pool.address) },
    { name: "Gas price and cap", cell: ({ admin, pool }) => price(admin.gas_price_gwei, pool.maximum_gas_price_gwei) },
    { name: "Gas admin", cell: ({ admin }) => admin.name },
    { name: "Paid or scheduled in 24 h", number: true, cell: ({ pool }) => pool.scheduled_in_24h },
    { name: "Why its withdrawals wait", text: true, cell: ({ pool }) => pool.paused?.reason ?? "" },
  ], rows, "There are no pools.");
}

/** The price against the cap: in words, and as a bar. */
function price(reading, cap) {
  if (reading.value === null) return element("span", { class: "warning" }, `not known: ${reading.error ?? "not read yet"}`);
  const [now, most] = [Number(reading.value), Number(cap)];
  const text = `${reading.value} of at most ${cap} gwei`;
  const above = now > most;
  return [element("meter", { min: 0, max: most * 1.5, high: most, optimum: 0, value: now, "aria-label": text }), " ",
    element("span", { class: above ? "warning" : null }, above ? `${text}: above the cap` : text)];
}

function gasAdmins(admins) {
  return table("Gas admins", [
    { name: "Name", cell: (it) => it.name },
    { name: "Address", cell: (it) => element("span", { class: "id" }, it.address) },
    { name: "Balance in wei", number: true, cell: (it) => element("span", { class: it.low_balance ? "bad" : null }, it.balance.value === null ? "not known" : BigInt(it.balance.value).toLocaleString("en"), it.low_balance ? ", low" : "") },
    { name: "Withdrawals left", number: true, cell: (it) => it.withdrawals_left === null ? "" : number(it.withdrawals_left) },
    { name: "Open", number: true, cell: (it) => number(it.queue.open) },
    { name: "Held", number: true, cell: (it) => number(it.queue.held) },
    { name: "Oldest", cell: (it) => ago(it.queue.oldest_scheduled_at) },
    { name: "Last error", text: true, cell: (it) => it.queue.last_error ?? "" },
  ], admins, "There are no gas admins.");
}

function list(withdrawals) {
  return table("Withdrawals", [
    { name: "Withdrawal", cell: (it) => batchLink(it.id, it.gas_admin) },
    { name: "State", cell: (it) => state(it.state) },
    { name: "Amount", number: true, cell: (it) => it.amount },
    { name: "Beneficiary", cell: (it) => element("span", { class: "id" }, it.beneficiary) },
    { name: "Scheduled", cell: (it) => ago(it.created_at) },
    { name: "Attempts", number: true, cell: (it) => number(it.attempts) },
    { name: "Transaction and block", cell: (it) => it.final_transaction ? [element("span", { class: "id" }, it.final_transaction.hash), ` in ${number(it.final_transaction.block)}`] : "" },
    { name: "Fee in ether", number: true, cell: (it) => it.final_transaction?.fee_ether ?? "" },
    { name: "Idempotency key", cell: (it) => it.idempotency_key ?? "" },
    { name: "Why it waits or failed", text: true, cell: (it) => it.correction ?? it.fail_reason ?? it.waits_for ?? "" },
  ], withdrawals, "There are no withdrawals.");
}
