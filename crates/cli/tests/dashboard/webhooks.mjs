// A webhook with a message that was given up and an event that waits: both are shown, and delivered when an operator asks for it.

import assert from "node:assert/strict";
import { check, given, heading, open, run, tablesFit, text } from "./browser.mjs";

const { url, receiver, message } = given;

await run(async (browser) => {
  const page = await open(browser, `${url}/dashboard#/webhooks`);
  await heading(page, "Webhooks");
  await page.locator("td[data-name=Waiting]", { hasText: /^1$/ }).waitFor();
  await page.locator('td[data-name="Given up"]', { hasText: /^1$/ }).waitFor();
  await check(page, "the webhooks");
  await tablesFit(page, "the webhooks");

  await page.getByRole("link", { name: receiver }).click();
  await heading(page, receiver);
  for (const shown of [message, "status 500", "Events that wait"]) await text(page, shown);
  await check(page, "a webhook");
  await page.getByRole("button", { name: "Deliver now" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await page.locator("#reason").fill("the receiver is repaired");
  await page.locator("#confirm").click();
  await dialog.waitFor({ state: "hidden" });
  await text(page, "1 messages that were given up");
  await text(page, "None.");
  await page.waitForFunction((id) => !document.body.innerText.includes(id), message);
  assert.equal(await page.getByRole("button", { name: "Deliver now" }).count(), 0, "nothing waits");
  assert.deepEqual(page.problems, []);
});
