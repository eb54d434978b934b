// The page asks for a token where the server needs one; a scope that is missing is explained.

import assert from "node:assert/strict";
import { check, given, heading, open, run, text } from "./browser.mjs";

const { url, token } = given;

await run(async (browser) => {
  const page = await open(browser, `${url}/dashboard`, { expected: [401, 403] });
  await heading(page, "Sign in");
  await check(page, "sign in");
  await page.locator("#token").fill("gb_wrong");
  await page.keyboard.press("Enter");
  await text(page, "token");
  await page.locator(".notice.bad").waitFor();
  await page.locator("#token").fill(token);
  await page.keyboard.press("Enter");
  await heading(page, "Overview");
  await text(page, "live");

  await page.getByRole("button", { name: "Pause all" }).click();
  await page.locator("#reason").fill("maintenance");
  await page.locator("#confirm").click();
  await text(page, "Not allowed:");
  await page.getByRole("button", { name: "Do nothing" }).click();
  assert.equal(await page.evaluate(() => localStorage.length), 0, "the token is kept for the tab only");

  await page.getByRole("button", { name: "Sign out" }).click();
  await heading(page, "Sign in");
  assert.deepEqual(page.problems, []);
});
