// views.mjs opens every view of a running dashboard in a headless Chromium and fails where a view logs an error, asks
// another host, breaks a rule of WCAG 2.1 AA, or does not show what it must.
//
//   node views.mjs http://127.0.0.1:8002 [--shots FOLDER] [--only VIEW,...] [--app NAME] [--saved]
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { end, launch, watch } from './browser.mjs';

const [base, ...args] = process.argv.slice(2);
const option = (name) => { const at = args.indexOf(`--${name}`); return at < 0 ? undefined : args[at + 1]; };
const shots = option('shots');
const only = option('only')?.split(',');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const problems = [];

const views = [
  ['overview', '#/', 'h1:has-text("Overview")', 'table tbody tr'],
  ['machines', '#/machines', 'h1:has-text("Machines")', '.worker, canvas.map'],
  ['app', `#/apps/${option('app') ?? 'images'}`, 'h2:has-text("Latency over time")', 'canvas'],
  ['plans', '#/plans', 'h2:has-text("What runs where")', 'td'],
  ['queries', '#/query', 'h1:has-text("Queries")', 'form'],
  ['query', '#/query/last', 'h1:has-text("Query")', 'svg'],
  ['what-if', '#/what-if', 'h1:has-text("What if")', 'input[type=range]'],
  ['figures', '#/figures', 'h1:has-text("Figures")', 'main'],
];

const browser = await launch();
const host = new URL(base).host;
const info = await (await fetch(`${base}/api/v1/info`)).json();
for (const [theme, width, height] of [['light', 1360, 900], ['dark', 420, 860]]) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
  watch(page, problems, host);
  for (const [name, hash, heading, content] of views) {
    if (only && !only.includes(name)) continue;
    if ((name === 'what-if' && !info.what_if) || (name === 'figures' && !info.figures)) continue;
    if (name === 'app' && info.figures && !option('app')) continue;
    try {
      if (!await (hash.endsWith('/last') ? query(page, heading, content) : show(page, hash, heading, content))) continue;
    } catch (e) {
      problems.push(`${name} (${theme}): ${e.message.split('\n')[0]}; it shows: ${(await page.innerText('body')).slice(0, 200)}`);
      await end(browser, problems);
    }
    await page.waitForTimeout(name === 'machines' || name === 'app' ? 1600 : 400); // an event of the stream, to be looked at
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (overflow > 1) problems.push(`${name} (${theme}): ${overflow} px wider than the screen of ${width} px`);
    await page.evaluate(axe);
    const broken = await page.evaluate(() => window.axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }).then((r) => r.violations));
    for (const v of broken) problems.push(`${name} (${theme}): ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 140)).join(' | ')}`);
    if (shots) {
      mkdirSync(shots, { recursive: true });
      await page.screenshot({ path: `${shots}/${name}-${theme}.png`, fullPage: theme === 'light' });
    }
  }
  await page.close();
}
await end(browser, problems);

/** show goes to a view and waits until its content is there. */
async function show(page, hash, heading, content) {
  await page.goto(`${base}/${hash}`);
  await page.waitForSelector(heading);
  return page.waitForSelector(content, { state: 'attached' });
}

/** query shows a query. A busy server may forget it between two questions: then it shows another one. */
async function query(page, heading, content) {
  const before = problems.length;
  for (let tries = 0; tries < 20; tries++) {
    const { id, compared } = await lastQuery();
    if (!id) return false;
    const wanted = compared ? 'th:has-text("Why not")' : content;
    await show(page, `#/query/${id}`, heading, `${wanted}, [role=alert]`);
    if (await page.$(wanted)) return true;
    problems.length = before;
  }
  throw new Error('the server forgot 20 queries before they were shown');
}

/** lastQuery returns the number of a query that the server remembers: one that missed its objective, or any. */
async function lastQuery() {
  const { missed, answered } = await (await fetch(`${base}/api/v1/queries?limit=100`)).json();
  for (const m of missed) { // best one that was in a batch which can be compared with others
    const r = await fetch(`${base}/api/v1/queries/${m.query}`);
    if (r.ok && (await r.json()).runs.some((x) => x.compared)) return { id: m.query, compared: true };
  }
  return { id: answered || missed[0]?.query };
}
