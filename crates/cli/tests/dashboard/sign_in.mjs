// The page asks for a token where the server needs one, and offers only what the token allows.

import assert from "node:assert/strict";
import { check, given, heading, open, run, text } from "./browser.mjs";

const { url, reader, operator, of_one, allowed, forbidden } = given;

await run(async (browser) => {
  const page = await open(browser, `${url}/dashboard`, { expected: [401, 403] });
  const button = (name) => page.getByRole("button", { name, exact: true });
  const views = () => page.locator("#views a").allTextContents();
  const signIn = async (token) => {
    await heading(page, "Sign in");
    await page.locator("#token").fill(token);
    await page.keyboard.press("Enter");
  };
  await heading(page, "Sign in");
  await check(page, "sign in");
  await signIn("gb_wrong");
  await page.locator(".notice.bad").waitFor();

  await signIn(reader);
  await heading(page, "Overview");
  await text(page, "live");
  assert.equal(await button("Pause all").count(), 0, "a reader pauses nothing");
  assert.ok(!(await views()).some((view) => ["Log", "Webhooks"].includes(view)), "they need another scope");
  assert.equal(await page.evaluate(() => localStorage.length), 0, "the token is kept for the tab only");
  await button("Sign out").click();

  await signIn(operator);
  await button("Pause all").waitFor();
  assert.ok((await views()).includes("Log"));
  await page.goto(`${url}/dashboard#/services`);
  await page.locator("input[name=idle]").check();
  await button("Pause").nth(1).waitFor();
  await button("Sign out").click();

  // This one is for one service.
  await signIn(of_one);
  await page.goto(`${url}/dashboard#/services/${encodeURIComponent(allowed)}`);
  await button("Pause").waitFor();
  await page.goto(`${url}/dashboard#/services/${encodeURIComponent(forbidden)}`);
  await text(page, "Not allowed:");
  await page.goto(`${url}/dashboard#/`);
  await heading(page, "Overview");
  assert.equal(await button("Pause all").count(), 0);
  assert.deepEqual(page.problems, []);
});
