// The transactions of a server for an EVM chain: the list with its filters, what each did or waits for, and its verbs.

import assert from "node:assert/strict";
import { check, given, heading, open, run, screenshot, tablesFit, text } from "./browser.mjs";

const { url, executed, parked, recipient } = given;
const of = (id) => `${url}/dashboard#/transactions/${id}`;

await run(async (browser) => {
  for (const [scheme, width] of [["light", 360], ["dark", 360], ["light", 800], ["dark", 1200], ["light", 1200]]) {
    const page = await open(browser, `${url}/dashboard#/transactions`, { scheme, width });
    await heading(page, "Transactions");
    for (const shown of ["admin0", "of at most 200 gwei", executed.slice(0, 12), "order 7", "executed", parked.slice(0, 12), "parked"]) await text(page, shown);
    await check(page, `transactions, ${scheme}, ${width}`);
    await tablesFit(page, `transactions, ${scheme}, ${width}`);
    if (width !== 800) await screenshot(page, "transactions", scheme, width);

    await page.goto(of(executed));
    await heading(page, "Transaction");
    for (const shown of ["The transaction is executed.", "WithdrawPollCreated", "member", "Gas used", "What was signed", "accepted"]) await text(page, shown);
    await check(page, `executed transaction, ${scheme}, ${width}`);
    await tablesFit(page, `transaction, ${scheme}, ${width}`);
    if (width !== 800) await screenshot(page, "transaction", scheme, width);

    await page.goto(of(parked));
    await text(page, "The transaction is parked: the base fee is");
    for (const shown of ["It fails if it is not signed before 2100-01-01", "0.000000001 gwei", "200 bytes", "times more, until"]) await text(page, shown);
    await check(page, `parked transaction, ${scheme}, ${width}`);
    await tablesFit(page, `parked-transaction, ${scheme}, ${width}`);
    await page.close();
  }

  const page = await open(browser, `${url}/dashboard#/transactions`);
  await heading(page, "Transactions");
  // A whole address, parts of one in any case, and parts of names and labels.
  for (const [name, part, found, other] of [
    ["to", recipient, parked, executed], ["to", "BEEF", parked, executed], ["label", "der 7", executed, parked],
  ]) {
    await page.goto(`${url}/dashboard#/transactions?state=open`);
    await page.waitForFunction((id) => !document.body.innerText.includes(id), executed.slice(0, 12));
    await page.goto(`${url}/dashboard#/transactions`);
    await text(page, executed.slice(0, 12));
    await page.locator(`input[name=${name}]`).fill(part);
    await page.getByRole("button", { name: "Search" }).click();
    await page.waitForFunction((id) => !document.body.innerText.includes(id), other.slice(0, 12));
    await text(page, found.slice(0, 12));
  }
  await page.locator("input[name=account]").fill("nobody");
  await page.getByRole("button", { name: "Search" }).click();
  await text(page, "There are no such transactions.");
  await page.goto(`${url}/dashboard#/transactions?account=dmin`);
  await text(page, parked.slice(0, 12));

  // One field finds things of several kinds.
  await page.locator("#find input").fill("der 7");
  await page.keyboard.press("Enter");
  await heading(page, "Found for “der 7”");
  for (const kind of ["Withdrawals and transactions", "Latest batches with this label"]) {
    const section = page.getByRole("region", { name: kind === "Withdrawals and transactions" ? kind : "Batches" });
    await page.getByRole("heading", { name: kind }).waitFor();
    await section.getByRole("link", { name: executed.slice(0, 12) }).waitFor();
  }
  assert.equal(await page.getByRole("heading", { name: "Services" }).count(), 0, "no service has this text");
  await check(page, "what was found");
  await page.goto(`${url}/dashboard#/transactions?account=admin0&state=executed`);
  await page.waitForFunction((id) => !document.body.innerText.includes(id), parked.slice(0, 12));
  await page.locator("main").getByRole("link", { name: executed.slice(0, 12) }).click();
  await text(page, "The transaction is executed.");
  assert.equal(await page.getByRole("button", { name: "Cancel" }).count(), 0, "what is executed is not cancelled");

  await page.goto(of(parked));
  await act(page, "Cancel", "ordered twice");
  await text(page, "The transaction has failed: cancelled before anything was signed.");
  await text(page, "cancel by local");
  await act(page, "Retry", "ordered after all");
  await text(page, "The transaction is parked: the base fee is");
  await page.getByRole("link", { name: parked.slice(0, 12) }).first().click();
  await heading(page, "Batch");
  await page.locator("dl").getByRole("link", { name: parked.slice(0, 12) }).click();
  await heading(page, "Transaction");
  assert.deepEqual(page.problems, []);
});

/** Asks first whether it is possible, and then does it with a reason. */
async function act(page, name, reason) {
  await page.getByRole("button", { name, exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await page.locator("#reason").fill(reason);
  await page.getByRole("button", { name: "What would it change?" }).click();
  await text(page, "It is possible");
  await page.locator("#confirm").click();
  await dialog.waitFor({ state: "hidden" });
}
