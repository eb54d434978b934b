// What the scripts share: a browser, pages that may not fail, and what the accessibility rules say.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { env, exit } from "node:process";
import { withPalette } from "./image.mjs";

const modules = env.GRID_BATCH_TEST_PLAYWRIGHT;
const require = createRequire(join(modules, "node_modules", "/"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** No server of others is asked for anything. */
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** Runs a test with a browser, and ends the process with its outcome. */
export async function run(test) {
  const browser = await chromium.launch({ executablePath: env.GRID_BATCH_TEST_CHROMIUM, args: ARGUMENTS });
  try {
    await test(browser);
    console.log("passed");
  } finally {
    await browser.close();
  }
  exit(0);
}

/** The arguments of the test. */
export const given = JSON.parse(env.GRID_BATCH_TEST_ARGUMENTS);

/** A page whose scripts may not fail, and whose policy may not be violated. `expected` are statuses, or parts of errors, that are part of the test. */
export async function open(browser, url, { width = 1200, scheme = "light", expected = [] } = {}) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(error.message));
  page.on("console", (message) => {
    const isExpected = expected.some((status) => message.text().includes(Number.isInteger(status) ? `status of ${status}` : status));
    if (message.type() === "error" && !isExpected) page.problems.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin)) page.problems.push(`it asks for ${request.url()}`);
  });
  await page.goto(url);
  return page;
}

/** The rules of WCAG 2.1 A and AA, and the width. */
export async function check(page, name) {
  assert.deepEqual(page.problems, [], name);
  // The page's policy forbids scripts that are not its own, so the rules run beside it.
  await page.evaluate(AXE);
  const options = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] };
  const { violations } = await page.evaluate((options) => window.axe.run(document, options), options);
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
  assert.deepEqual(found, [], name);
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wider, 0, `${name} is wider than the window`);
}

/** An image for the manual, in light and wide unless its name says otherwise. */
export async function screenshot(page, name, scheme, width) {
  const parts = [name, width < 1200 && (width < 800 ? "phone" : "narrow"), scheme === "dark" && "dark"];
  writeFileSync(join(given.images, `${parts.filter(Boolean).join("-")}.png`), withPalette(await page.screenshot()));
}

/** No table is wider than its place. */
export async function tablesFit(page, name) {
  const wider = await page.evaluate(() => [...document.querySelectorAll(".scroll")]
    .filter((it) => it.scrollWidth > it.clientWidth).map((it) => `${it.getAttribute("aria-label")}: ${it.scrollWidth} of ${it.clientWidth}`));
  assert.deepEqual(wider, [], name);
}

export function heading(page, text) {
  return page.locator("main h1", { hasText: text }).waitFor();
}

/** Waits until a text is on the page. */
export function text(page, text) {
  return page.getByText(text).filter({ visible: true }).first().waitFor();
}
