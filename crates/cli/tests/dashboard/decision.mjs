// A held batch is decided: what would change is shown first, and a reason is required.

import assert from "node:assert/strict";
import { check, given, heading, open, run, text } from "./browser.mjs";

const { url, held } = given;

await run(async (browser) => {
  const page = await open(browser, `${url}/dashboard#/held`, { expected: [409] });
  await heading(page, "Held batches");
  await page.getByRole("button", { name: "Decide …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  // The batch was never sent, so it cannot be sent again.
  await page.getByRole("button", { name: "Cancel" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Send again" }).count(), 0);
  await check(page, "the decisions");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator("#confirm").click();
  assert.ok(await dialog.isVisible(), "the reason is required");
  await page.locator("#reason").fill("the application was stopped");
  await page.getByRole("button", { name: "What would it change?" }).click();
  await text(page, "It would change:");
  await check(page, "the dialog");
  await page.locator("#confirm").click();
  await dialog.waitFor({ state: "hidden" });
  await text(page, "No batch is held.");

  await page.goto(`${url}/dashboard#/batches/${held}`);
  await heading(page, "Batch");
  await text(page, "cancel by local");
  await text(page, "the application was stopped");
  assert.deepEqual(page.problems, []);

  // What is not possible any more is explained, and nothing is closed.
  await page.goto(`${url}/dashboard#/nodes`);
  await page.getByRole("button", { name: "Drain" }).click();
  await page.locator("#reason").fill("new kernel");
  await page.locator("#confirm").click();
  await text(page, "no other instance runs");
  await page.getByRole("button", { name: "Do nothing" }).click();
  await dialog.waitFor({ state: "hidden" });
});
