// deeds.mjs does on a running dashboard what people do: moves a slider and asks what would happen, walks through the
// page by keyboard, and goes on after the server has started again. The caller stops and starts the server: the program
// prints "stop" and "start" and waits for a line each.
//
//   node deeds.mjs http://127.0.0.1:8002 [--shots FOLDER]
import { mkdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { end, launch, watch } from './browser.mjs';

const [base, ...args] = process.argv.slice(2);
const shots = args[0] === '--shots' ? args[1] : undefined;
if (shots) mkdirSync(shots, { recursive: true });
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const problems = [];
let gone = false;
const span = 'select:has(option[value="30"])';

const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
watch(page, problems, new URL(base).host, () => gone);

// By keyboard alone: the skip link, the tabs, a view.
await page.goto(`${base}/`);
await page.waitForSelector('h1:has-text("Overview")');
await page.keyboard.press('Tab');
if (await page.evaluate(() => document.activeElement?.className) !== 'skip') problems.push('the first stop of the keyboard is no skip link');
let steps = 0;
while (await page.evaluate(() => document.activeElement?.textContent) !== 'What if' && steps++ < 12) await page.keyboard.press('Tab');
await page.keyboard.press('Enter');
await page.waitForSelector('h1:has-text("What if")');

// What if: three times the load.
const load = page.locator('label:has-text("Load") input').first();
await load.focus();
for (let k = 0; k < 20; k++) await page.keyboard.press('ArrowRight');
await page.selectOption(span, '30');
await ask('demand:');
await page.waitForSelector('#answer canvas');
if (shots) await page.screenshot({ path: `${shots}/what-if-answer.png`, fullPage: true });

// What keeps the load from being carried, and a mend on the sliders: a change comes in the address.
await page.goto(`${base}/#/what-if?change=${encodeURIComponent(JSON.stringify({ apps: { images: { load: 8, slo_ms: 20 } } }))}`);
await page.waitForSelector('output:has-text("8.0 times")');
await page.selectOption(span, '30');
await ask('slo:');
const advice = await page.innerText('#answer');
if (!/carried|falls short/.test(advice)) problems.push(`the answer does not say whether the load is carried: ${advice.slice(0, 300)}`);
const mend = page.locator('button:has-text("Set the sliders to it")').first();
if (await mend.count() > 0) {
  const was = await page.locator('form output').allInnerTexts();
  await mend.click();
  await page.waitForFunction((was) => JSON.stringify([...document.querySelectorAll('form output')].map((o) => o.textContent)) !== was, JSON.stringify(was))
    .catch(() => problems.push('a mend does not move the sliders'));
}

// The diagnosis of a plan, as sluice plan has it.
await page.goto(`${base}/#/plans`);
await page.locator('button:has-text("Find")').first().click();
await page.waitForSelector('#advice dl', { state: 'attached' });

// Batches move on a machine: two pictures of its strip differ.
await page.goto(`${base}/#/machines`);
await page.waitForSelector('canvas.strip');
await page.waitForTimeout(1500);
const strip = () => page.locator('canvas.strip').first().evaluate((c) => c.toDataURL());
const first = await strip();
await page.waitForFunction((first) => document.querySelector('canvas.strip').toDataURL() !== first, first)
  .catch(() => problems.push('the strip of batches does not move'));

// The server starts again: the page says so, and goes on by itself.
await page.goto(`${base}/#/`);
await page.waitForSelector('[role=status]:has-text("Live")');
const since = () => page.evaluate(() => fetch('/api/v1/info').then((r) => r.json()).then((x) => x.started_ms));
const before = await since();
gone = true;
console.log('stop');
await lines.next();
await page.waitForSelector('[role=status]:has-text("Connection lost")');
if (shots) await page.screenshot({ path: `${shots}/connection-lost.png` });
console.log('start');
await lines.next();
await page.waitForSelector('[role=status]:has-text("Live")');
gone = false;
await page.waitForSelector('table tbody tr');
if (await since() === before) problems.push('the page shows the server of before');
await end(browser, problems);

/** ask asks what would happen until the answer has a text. A server gives up after a minute, where others are busy. */
async function ask(text) {
  const busy = 'button.main:disabled', answered = (text) => document.querySelector('#answer')?.textContent?.includes(text);
  for (let tries = 0; tries < 5; tries++) {
    await page.click('button:has-text("What would happen?")');
    await page.waitForSelector(busy, { state: 'detached' });
    if (await page.evaluate(answered, text)) return;
  }
  problems.push(`no answer has ${text}: ${(await page.innerText('main')).slice(0, 300)}`);
}
