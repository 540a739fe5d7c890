// Drives Chromium for tests: reads one JSON request a line, answers one JSON line each.
//
//   browser.mjs NODE_MODULES CHROMIUM
//
// A request is {id, do, page?, ...}, an answer {id, ok} or {id, error}. Requests of different
// pages run at once. `Skillbook.Test.Browser` is the other side.

import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { join } from "node:path";

const [modules, chromium] = process.argv.slice(2);
const require = createRequire(join(modules, "index.js"));
const playwright = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const home = mkdtempSync(join(tmpdir(), "skillbook-browser-"));
const browser = await playwright.chromium.launch({
  executablePath: chromium,
  env: { ...process.env, HOME: home },
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});

const pages = new Map();
let count = 0;

// Every page has a context of its own: cookies, storage, and a list of problems.
async function open({ url, width, height, theme, script, motion }) {
  const context = await browser.newContext({
    baseURL: url,
    viewport: { width, height },
    colorScheme: theme,
    javaScriptEnabled: script,
    reducedMotion: motion ? "no-preference" : "reduce",
    acceptDownloads: true,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const problems = [];
  const origin = new URL(url).origin;
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`script: ${error}`));
  page.on("request", (request) => {
    const to = request.url();
    if (!to.startsWith(origin) && !to.startsWith("data:")) problems.push(`request: ${to}`);
  });
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  pages.set(++count, { context, page, problems });
  return count;
}

// A locator: {css}, {role, name}, {label}, {text}.
function find(page, { css, role, name, label, text }) {
  if (css) return page.locator(css);
  if (role) return page.getByRole(role, { name, exact: true });
  if (label) return page.getByLabel(label, { exact: true });
  return page.getByText(text, { exact: true });
}

const actions = {
  goto: async ({ page }, { path }) => {
    const response = await page.goto(path);
    return response.status();
  },
  click: async ({ page }, { at }) => find(page, at).click(),
  fill: async ({ page }, { at, value }) => find(page, at).fill(value),
  type: async ({ page }, { at, value }) => find(page, at).pressSequentially(value),
  select: async ({ page }, { at, value }) => find(page, at).selectOption(value),
  check: async ({ page }, { at, value }) => find(page, at).setChecked(value),
  upload: async ({ page }, { at, name, type, data }) =>
    find(page, at).setInputFiles({ name, mimeType: type, buffer: Buffer.from(data, "base64") }),
  download: async ({ page }, { at }) => {
    const [download] = await Promise.all([page.waitForEvent("download"), find(page, at).click()]);
    const data = readFileSync(await download.path()).toString("base64");
    return { name: download.suggestedFilename(), data };
  },
  press: async ({ page }, { key }) => page.keyboard.press(key),
  wait: async ({ page }, { at, state }) => find(page, at).first().waitFor({ state }),
  wait_url: async ({ page }, { path }) => page.waitForURL(path),
  text: async ({ page }, { at }) => find(page, at).first().innerText(),
  count: async ({ page }, { at }) => find(page, at).count(),
  value: async ({ page }, { at }) => find(page, at).inputValue(),
  html: async ({ page }) => page.content(),
  url: async ({ page }) => page.url(),
  title: async ({ page }) => page.title(),
  reload: async ({ page }) => (await page.reload()).status(),
  focused: async ({ page }) =>
    page.evaluate(() => {
      const at = document.activeElement;
      return [at.tagName.toLowerCase(), at.id, (at.innerText || at.value || "").trim()];
    }),
  evaluate: async ({ page }, { script }) => page.evaluate(script),
  resize: async ({ page }, { width, height }) => page.setViewportSize({ width, height }),
  cookies: async ({ context }) => context.cookies(),
  problems: async ({ problems }) => problems.splice(0),
  screenshot: async ({ page }, { file, whole }) => {
    await page.screenshot({ path: file, fullPage: whole, animations: "disabled" });
  },
  // The findings of axe-core, each with its rule and places. The policy of the page does not
  // hold for scripts of the driver.
  axe: async ({ page }) => {
    await page.evaluate(axe);
    return page.evaluate(async () => {
      const { violations } = await window.axe.run(document, {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      });
      return violations.map(({ id, help, nodes }) => ({
        id,
        help,
        nodes: nodes.map((node) => `${node.html} (${node.failureSummary})`),
      }));
    });
  },
  // Pixels by which the content is wider than the window.
  overflow: async ({ page }) =>
    page.evaluate(() => {
      const root = document.documentElement;
      return root.scrollWidth - root.clientWidth;
    }),
  close: async ({ context }, { page }) => {
    pages.delete(page);
    await context.close();
  },
};

async function answer(line) {
  const request = JSON.parse(line);
  const reply = { id: request.id };
  try {
    if (request.do === "open") reply.ok = await open(request);
    else reply.ok = (await actions[request.do](pages.get(request.page), request)) ?? null;
  } catch (error) {
    reply.error = String(error.message ?? error);
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}

const lines = createInterface({ input: process.stdin });
lines.on("line", answer);
lines.on("close", async () => {
  await browser.close();
  rmSync(home, { recursive: true, force: true });
  process.exit(0);
});
process.stdout.write(JSON.stringify({ id: 0, ok: browser.version() }) + "\n");
