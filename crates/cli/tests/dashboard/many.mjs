// A verb about many batches shows what it would change, and then changes that. Lists go on after a page.

import assert from "node:assert/strict";
import { check, given, heading, open, run, text } from "./browser.mjs";

const { url, service, other } = given;

await run(async (browser) => {
  const page = await open(browser, `${url}/dashboard#/batches`);
  await heading(page, "Batches");
  await text(page, "180");
  await page.getByRole("link", { name: "Older batches" }).click();
  await page.locator("tbody tr").nth(79).waitFor();
  assert.equal(await page.locator("tbody tr").count(), 80);

  await page.goto(`${url}/dashboard#/batches?service=${encodeURIComponent(service.slice(-5))}`);
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 60);
  assert.equal(await page.getByText(other).count(), 0, "the filter matches a part of the service");
  await page.getByRole("checkbox", { name: /^Choose the batch/ }).first().check();
  await page.getByRole("button", { name: "Act on the 1 chosen …" }).waitFor();
  await page.getByRole("button", { name: "Act on all open that match …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Act on 60 batches").waitFor();
  const confirm = page.locator("#confirm");
  await confirm.filter({ hasText: "Hold: 60 batches" }).waitFor();
  await check(page, "the preview");
  await page.locator("#verb").selectOption("release");
  await dialog.getByText("It is refused for:").waitFor();
  assert.ok(await confirm.isDisabled(), "none of them is held");
  assert.deepEqual(await page.locator("#verb optgroup option").allTextContents(), ["Send again", "Cancel", "End as committed", "End as invalid"]);
  await page.locator("#verb").selectOption({ label: "Send again" });
  await dialog.getByText("not at the ledger").first().waitFor();
  assert.equal(await confirm.getAttribute("class"), "danger");
  await page.locator("#verb").selectOption("hold");
  await confirm.filter({ hasText: "Hold: 60 batches" }).waitFor();
  await page.locator("#reason").fill("the application asks for it");
  await confirm.click();
  await dialog.waitFor({ state: "hidden" });
  await text(page, "60 batches changed");
  await page.goto(`${url}/dashboard#/held`);
  await page.locator("tbody tr").nth(59).waitFor();
  assert.deepEqual(page.problems, []);
});
