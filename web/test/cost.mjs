// cost.mjs measures what the dashboard costs those who are served: throughput and latency of a server under load, in
// turns without anybody looking, with so many pages open, and while questions "what if" are answered one after the
// other. Pages are stream readers that also ask for batches as the view Machines does; with --browser one more is a real
// Chromium. They run when nobody else does (chrt), since people look from other machines. Lag is the 99th percentile of
// how late the load generator sent: where it is high, this machine is too small for the rate. Cpu is the processor time
// of the server for each query, in µs. P99_server is what the server itself says of its latest ten seconds.
//
// With --apart the server has the first core of this machine for itself, and the load generator and the pages share the
// second one, where the load generator goes first: both at real-time priority (root). So what pages do on their own
// machines costs those who are served nothing, and what the server does for them is what remains.
//
//   node cost.mjs PATH/TO/sluice [--rate 5000] [--seconds 6] [--repeats 4] [--pages 10] [--browser] [--apart]
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [program, ...args] = process.argv.slice(2);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
if (program === '--read') await read(args[0], Number(args[1]), args.includes('--browser'));
const option = (name, or) => { const at = args.indexOf(`--${name}`); return at < 0 ? or : Number(args[at + 1]); };
const rate = option('rate', 5000), seconds = option('seconds', 6), repeats = option('repeats', 4), pages = option('pages', 10);
const dir = mkdtempSync(join(tmpdir(), 'sluice-cost-'));
const free = () => new Promise((done) => { const s = createServer(); s.listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => done(port)); }); });
const [grpc, admin] = [await free(), await free()];
const file = join(dir, 'sluice.yaml');
writeFileSync(file, `
version: 1
device_types: [{name: gpu, cores: 8, price_per_hour: 1.2}]
workers:
  - {name: gpu, device_type: gpu, count: 4, backend: {kind: fake, latency: 3ms, latency_per_item: 200us}}
apps:
  - name: images
    slo: {latency: 100ms}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: big, accuracy: 0.9, max_batch: 32}, {name: quick, accuracy: 0.7, max_batch: 32}]
server: {not_ready: 0s, http: "off", grpc: "127.0.0.1:${grpc}", admin: "127.0.0.1:${admin}"}
`);
const base = `http://127.0.0.1:${admin}`;
const apart = args.includes('--apart');
/** placed is a command as it runs on a core, at real-time priority where one is given. */
const placed = (core, priority, command) => (apart ? ['taskset', '-c', String(core), ...(priority ? ['chrt', '--rr', String(priority)] : []), ...command] : command);
const start = ([command, ...rest], how) => spawn(command, rest, how);
const server = start(placed(0, 20, [program, 'serve', '-f', file]), { stdio: ['ignore', 'ignore', 'pipe'] });
let trouble = '';
server.stderr.on('data', (b) => { trouble = (trouble + b).slice(-2000); });

/** spent is the processor time that the server has taken, in ms; 0 where the system does not tell. */
function spent() {
  const file = `/proc/${server.pid}/stat`;
  if (!existsSync(file)) return 0;
  const fields = readFileSync(file, 'utf8').split(') ')[1].split(' ');
  return 10 * (Number(fields[11]) + Number(fields[12])); // utime and stime, in hundredths of a second
}

/** load sends queries for some seconds and returns the report. */
function load() {
  return new Promise((done, fail) => {
    const c = start(placed(1, 10, [program, 'load', '-u', `grpc://127.0.0.1:${grpc}`, '-f', file, '--request-rate-range', String(rate),
      '--warmup', '1s', '--duration', `${seconds + 1}s`, '--json']), { stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '', errors = '';
    c.stdout.on('data', (b) => { out += b; });
    c.stderr.on('data', (b) => { errors += b; });
    c.on('close', (code) => (out ? done(JSON.parse(out)) : fail(new Error(`sluice load ended with ${code}: ${errors}`))));
  });
}

/** open has pages open, in a process that yields to all others, until what it returns is called. */
async function open() {
  const reader = [process.execPath, process.argv[1], '--read', base, String(pages), ...(args.includes('--browser') ? ['--browser'] : [])];
  const c = start(apart ? placed(1, 0, reader) : ['chrt', '--idle', '0', ...reader], { stdio: ['pipe', 'pipe', 'inherit'] });
  let said = '';
  c.stdout.on('data', (b) => { said += b; });
  while (!said.includes('open')) await pause(50);
  return () => new Promise((done) => { c.on('close', () => done(Number(said.split('\n')[1]))); c.stdin.end(); });
}

/** read is that process: it reads streams and asks for batches until its input ends, and prints how many events came, each of which it has parsed. */
async function read(base, n, browse) {
  const stop = new AbortController();
  let events = 0, since = 0;
  for (let k = 0; k < n; k++) {
    void (async () => {
      const reply = await fetch(`${base}/api/v1/stream?topics=overview,seconds,machines`, { signal: stop.signal });
      const text = new TextDecoder();
      let rest = '';
      for await (const part of reply.body) {
        const whole = (rest + text.decode(part, { stream: true })).split('\n\n');
        rest = whole.pop();
        for (const event of whole) {
          const data = event.split('\n').find((line) => line.startsWith('data:'));
          if (data) events += JSON.parse(data.slice(5)) != null;
        }
      }
    })().catch(() => undefined);
  }
  setInterval(() => {
    for (let k = 0; k < n; k++) void fetch(`${base}/api/v1/batches?workers=0,1,2,3&since=${since}`, { signal: stop.signal }).then((r) => r.json()).then((x) => { since = x.now_s; }).catch(() => undefined);
  }, 250);
  let browser;
  if (browse) {
    const { launch } = await import('./browser.mjs');
    browser = await launch();
    const page = await browser.newPage();
    await page.goto(`${base}/#/machines`);
    await page.waitForSelector('.worker');
  }
  console.log('open');
  for await (const _ of process.stdin);
  console.log(events);
  await browser?.close();
  process.exit(0);
}

/** ask asks what would happen, again and again, until stop is called. */
function ask() {
  const stop = new AbortController();
  let answers = 0;
  void (async () => {
    while (!stop.signal.aborted) {
      const r = await fetch(`${base}/api/v1/what-if`, { method: 'POST', signal: stop.signal, headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ span_s: 10, change: { apps: { images: { load: 1.5 } } } }) });
      await r.arrayBuffer();
      answers += r.ok;
      if (!r.ok) await pause(200);
    }
  })().catch(() => undefined);
  return () => { stop.abort(); return answers; };
}

const rows = apart ? { alone: [], pages: [] } : { alone: [], pages: [], 'what if': [] };
try {
  for (let k = 0; k < 100; k++) {
    if (await fetch(`${base}/api/v1/info`).then((r) => r.ok, () => false)) break;
    if (server.exitCode != null) throw new Error(`the server ended: ${trouble}`);
    await pause(100);
  }
  await load(); // warms everything up
  for (let n = 0; n < repeats; n++) {
    const order = Object.keys(rows);
    for (let k = 0; k < n % order.length; k++) order.push(order.shift()); // each comes first in turn
    for (const what of order) {
      let end = () => 0;
      if (what === 'pages') end = await open();
      if (what === 'what if') end = ask();
      const before = spent(), r = await load(), after = spent();
      const { report, send_lag: lag } = r[0], o = report.overall;
      const own = await fetch(`${base}/api/v1/overview`).then((x) => x.json());
      rows[what].push({ throughput: o.throughput, p50: o.latency.p50_ms, p99: o.latency.p99_ms, p99_server: own.apps[0].now.latency_p99_ms, violations: o.violation_ratio, lag: lag.p99_ms, cpu: ((after - before) * 1000) / (rate * (seconds + 1)), did: await end() });
      console.error(what, JSON.stringify(rows[what].at(-1)));
      await pause(500);
    }
  }
} finally {
  server.kill();
  rmSync(dir, { recursive: true, force: true });
}
const sorted = (list) => [...list].sort((a, b) => a - b);
const median = (list) => { const s = sorted(list), h = s.length >> 1; return s.length % 2 ? s[h] : (s[h - 1] + s[h]) / 2; };
const out = { rate, seconds, repeats, pages, browser: args.includes('--browser'), apart };
for (const [what, list] of Object.entries(rows)) {
  out[what] = {};
  for (const key of ['throughput', 'p50', 'p99', 'p99_server', 'lag', 'cpu']) {
    // Each run is compared with the one alone of its turn: what else the machine does changes slowly.
    const s = sorted(list.map((r) => r[key])), change = sorted(list.map((r, k) => 100 * (r[key] / rows.alone[k][key] - 1)));
    out[what][key] = { median: Number(median(s).toFixed(2)), from: Number(s[0].toFixed(2)), to: Number(s.at(-1).toFixed(2)) };
    if (what !== 'alone') out[what][key].change_percent = { median: Number(median(change).toFixed(1)), from: Number(change[0].toFixed(1)), to: Number(change.at(-1).toFixed(1)) };
  }
  out[what].did = list.map((r) => r.did);
}
console.log(JSON.stringify(out, null, 1));
