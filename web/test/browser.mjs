// What the checks in a browser share: a headless Chromium, and the list of what must not happen on a page.
import { chromium } from 'playwright-core';

/** patience is how many ms whatever must appear may take: a machine that is busy with other things is no fault. */
const patience = 240_000;

/** launch starts a browser with a profile of its own that asks nobody for anything. */
export async function launch() {
  return chromium.launch({
    timeout: patience,
    executablePath: process.env.SLUICE_CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update',
      '--disable-sync', '--no-first-run', '--no-default-browser-check', '--disable-dev-shm-usage'],
  });
}

/**
 * watch has patience with a page and collects what must not happen on it. While lost() is true, requests that fail are
 * no fault.
 */
export function watch(page, found, host, lost = () => false) {
  page.setDefaultTimeout(patience);
  page.on('console', (m) => { if (m.type() === 'error' && !lost()) found.push(`${page.url()}: console: ${m.text()}`); });
  page.on('pageerror', (e) => found.push(`${page.url()}: error: ${e.message}`));
  page.on('request', (r) => {
    const u = new URL(r.url());
    if (u.protocol !== 'data:' && u.host !== host) found.push(`${page.url()}: a request to ${u.host}`);
  });
}

/** end closes the browser, says what was found, and ends the program. */
export async function end(browser, problems, more = {}) {
  await browser.close();
  for (const p of problems) console.error(p);
  console.log(JSON.stringify({ problems: problems.length, ...more }));
  process.exit(problems.length > 0 ? 1 : 0);
}
