// scale.mjs measures the page in the browser: the time and the bytes until it shows something, frames while it scrolls,
// and long tasks.
//
//   node scale.mjs http://127.0.0.1:8002 [VIEW ...]
import { end, launch, watch } from './browser.mjs';

const [base, ...views] = process.argv.slice(2);
const problems = [];
const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
watch(page, problems, new URL(base).host);
let bytes = 0;
const session = await page.context().newCDPSession(page);
await session.send('Network.enable');
session.on('Network.loadingFinished', (e) => { bytes += e.encodedDataLength; });
const begun = Date.now();
await page.goto(`${base}/`);
await page.waitForSelector('table tbody tr');
const shown = Date.now() - begun;
const loaded = bytes;
await page.waitForTimeout(300);
const out = { load_ms: shown, load_kb: Math.round(loaded / 1024), views: {} };
for (const view of views.length > 0 ? views : ['', 'machines']) {
  await page.goto(`${base}/#/${view}`);
  await page.waitForTimeout(2500);
  out.views[view || 'overview'] = await page.evaluate(() => new Promise((done) => {
    const long = [], times = [];
    new PerformanceObserver((l) => l.getEntries().forEach((e) => long.push(Math.round(e.duration)))).observe({ type: 'longtask' });
    const end = performance.now() + 5000, height = document.documentElement.scrollHeight - innerHeight;
    let last = performance.now(), down = 1;
    const step = (now) => {
      times.push(now - last);
      last = now;
      if (scrollY >= height - 1) down = -1;
      if (scrollY <= 0) down = 1;
      scrollBy(0, down * 24);
      if (now < end) return requestAnimationFrame(step);
      times.shift();
      times.sort((a, b) => a - b);
      const sum = times.reduce((a, b) => a + b, 0);
      done({ frames_per_s: Math.round((1000 * times.length) / sum * 10) / 10, p50_ms: times[times.length >> 1], p99_ms: times[Math.floor(times.length * 0.99)], max_ms: times[times.length - 1], long_tasks_ms: long, scrolled_px: height });
    };
    requestAnimationFrame(step);
  }));
}
await end(browser, problems, out);
