import { useEffect, useState } from 'preact/hooks';
import { useAsk } from '../api';
import { dollars, millis, none, percent, rate, time } from '../format';
import { Badge, Problem } from '../parts';
import type { Live } from '../main';
import type { Comparison, Missed, QueryView as Query, Weighed } from '../types';

export function QueryView({ live, id, app }: { live: Live; id?: string; app: string }) {
  const [typed, setTyped] = useState(id ?? '');
  useEffect(() => setTyped(id ?? ''), [id]);
  const late = useAsk<{ missed: Missed[]; answered?: number }>(`queries?limit=100${app ? `&app=${encodeURIComponent(app)}` : ''}`, live.epoch, live.link === 'live' && !id ? 2000 : 0);
  const asked = useAsk<Query>(id ? `queries/${encodeURIComponent(id)}` : null, live.epoch);
  return (
    <>
      <h1>{id ? `Query ${id}` : 'Queries'}</h1>
      <form class="controls" onSubmit={(e) => { e.preventDefault(); if (typed.trim()) location.hash = `#/query/${typed.trim()}`; }}>
        <label>Number of a query <input value={typed} inputMode="numeric" size={14} onInput={(e) => setTyped(e.currentTarget.value)} /></label>
        <button class="main" type="submit">Show its way</button><span class="muted small">Every answer carries it as the parameter query_id.{late.data?.answered ? <> Or look at <a href={`#/query/${late.data.answered}`}>the latest that was answered</a>.</> : ''}</span>
      </form>
      {id && <Problem error={asked.error} />}
      {id && asked.data && <Way q={asked.data} live={live} />}
      <section class="card"><h2>{app ? `Queries to ${app} that missed the objective` : 'Latest queries that missed their objective'}</h2>
        <Problem error={late.error} />
        {late.data?.missed.length === 0 ? <p class="empty">{late.data.answered === 0 ? 'No query has been answered yet.' : 'None: everything was answered in time.'}</p> : (
          <div class="scroll" style="max-height:420px" tabIndex={0} role="region" aria-label="Queries that missed their objective"><table>
            <thead><tr><th>Query</th><th>App</th><th>Ended</th><th class="num">After</th><th>Outcome</th><th>Why</th></tr></thead>
            <tbody>{late.data?.missed.map((m) => <tr key={m.query}><td><a href={`#/query/${m.query}`}>{m.query}</a></td><td>{m.app}</td><td>{time(m.at_s, live.startedMS)}</td><td class="num">{millis(m.latency_ms)}</td><td>{m.late ? 'late' : m.outcome}</td><td>{m.late ? 'answered after its deadline' : m.reason}</td></tr>)}</tbody>
          </table></div>)}
      </section>
    </>
  );
}

function Way({ q, live }: { q: Query; live: Live }) {
  const end = q.latency_ms ?? Math.max(q.deadline_ms, ...q.runs.map((r) => (r.started_s - q.arrived_s) * 1000 + (r.took_ms || r.expected_ms)));
  // A query that ended long before it was due would be a dot: then the axis ends with it.
  const far = q.deadline_ms > 5 * end;
  const most = far ? end * 1.25 : Math.max(end, q.deadline_ms) * 1.04, left = 150, wide = 820, row = 34;
  const x = (ms: number) => left + (ms / most) * (wide - left - 10);
  const height = q.runs.length * row + 58;
  // A batch may end some time before the server notices: where its processor is busy.
  const ran = Math.max(0, ...q.runs.map((r) => (r.started_s - q.arrived_s) * 1000 + (r.took_ms || 0)));
  const least = Math.max(1, end * 0.02), after = q.outcome === 'served' && q.runs.every((r) => r.took_ms) && q.runs.length > 0 ? end - ran : 0;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((f) => f * most * 0.96);
  return (
    <section class="card">
      <h2>{q.app}{' '}{!q.outcome ? <Badge kind="plain">has not ended</Badge> : q.outcome === 'served' && !q.late ? <Badge kind="good">✓ in time</Badge> : <Badge kind="bad">✕ {q.late ? 'late' : q.outcome}</Badge>}</h2>
      <p>Arrived {time(q.arrived_s, live.startedMS)} with {q.items} item{q.items === 1 ? '' : 's'}, due {millis(q.deadline_ms)} later{q.priority ? `, priority ${q.priority}` : ''}{q.min_accuracy ? `, accuracy at least ${percent(q.min_accuracy)}` : ''}{q.pinned ? `, pinned to ${q.pinned}` : ''}.
        {q.outcome && ` ${q.outcome[0].toUpperCase()}${q.outcome.slice(1)} after ${millis(q.latency_ms)}: ${q.reason}.`}{q.accuracy ? ` Accuracy ${percent(q.accuracy)}.` : ''}</p>
      <div class="legend"><span><i style="background:var(--c3)" />waits for a machine</span><span><i style="background:var(--c1)" />waits for a batch</span><span><i style="background:var(--c0)" />runs</span>{after > least && <span><i style="background:var(--c7)" />until the server took note</span>}<span><i style="background:var(--c5)" />due</span></div>
      <div class="scroll" tabIndex={0} role="group" aria-label="Picture"><svg viewBox={`0 0 ${wide} ${height}`} width="100%" style="min-width:560px;max-width:1000px" role="img" aria-label={`Way of query ${q.query} over ${millis(end)}`}>
        {ticks.map((t) => <g key={t}><line x1={x(t)} x2={x(t)} y1="6" y2={height - 26} stroke="var(--grid)" /><text x={x(t)} y={height - 8} text-anchor="middle" class="dim">{millis(t)}</text></g>)}
        {q.runs.map((r, k) => {
          const at = (r.started_s - q.arrived_s) * 1000, y = k * row + 12, turn = r.waited_for_stream_ms ?? 0;
          const from = at - r.waited_ms, routed = from + turn + r.waited_for_instance_ms, took = r.took_ms || r.expected_ms;
          const part = (a: number, b: number, c: string) => b - a > 0 && <rect x={x(a)} y={y} width={Math.max(1, x(b) - x(a))} height="18" fill={`var(--${c})`} />;
          return <g key={k}><text x={left - 8} y={y + 13} text-anchor="end">{r.stage ?? r.variant}</text>{part(from, routed, 'c3')}{part(routed, at, 'c1')}{part(at, at + took, 'c0')}
            {r.failed && <text x={x(at + took) + 4} y={y + 14}>✕ failed, run again</text>}</g>;
        })}
        {after > least && <rect x={x(ran)} y={(q.runs.length - 1) * row + 12} width={x(end) - x(ran)} height="18" fill="var(--c7)"><title>{`${millis(after)} from the end of the last batch to the answer: the server's processor was busy elsewhere`}</title></rect>}
        {q.runs.length === 0 && <g><text x={left - 8} y="25" text-anchor="end">waits</text><rect x={x(0)} y="12" width={Math.max(1, x(end) - x(0))} height="18" fill="var(--c3)" /></g>}
        {far && <text x={wide - 6} y="14" text-anchor="end" class="dim">due at {millis(q.deadline_ms)} →</text>}
        {!far && <line x1={x(q.deadline_ms)} x2={x(q.deadline_ms)} y1="2" y2={height - 26} stroke="var(--c5)" stroke-width="2" stroke-dasharray="6 4" />}
      </svg></div>
      {q.runs.map((r) => (
        <div key={r.batch}><h3>{r.stage ? `Stage ${r.stage}: b` : 'B'}atch {r.batch} on {r.worker ? `machine ${r.worker}, ` : ''}instance {r.instance}</h3>
          <p style="margin:0 0 6px">Variant {r.variant}, {r.items} item{r.items === 1 ? '' : 's'}, because: {r.why}. {r.took_ms ? `Took ${millis(r.took_ms)}, ${millis(r.expected_ms)} were expected.` : `${millis(r.expected_ms)} were expected.`}
            {r.with && r.with.length > 0 && <> Together with {r.with.map((n, k) => <>{k > 0 && ', '}<a href={`#/query/${n}`}>{n}</a></>)}.</>}</p>
          {r.weighed && <WeighedBy w={r.weighed} />}
          {r.compared ? <Compared c={r.compared} /> : live.info.run && <p class="muted small">What could have begun instead is longer ago than is remembered.</p>}
        </div>))}
      <details><summary>As sluice explain writes it</summary><pre>{q.text}</pre></details>
    </section>
  );
}

const amount = (v: number) => (v === 0 ? '0' : Math.abs(v) >= 1e-4 ? v.toPrecision(3) : v.toExponential(1));

/** WeighedBy shows what the rule itself compared when it chose a batch, the batch first. */
function WeighedBy({ w }: { w: Weighed }) {
  if (w.late) return <p style="margin:0 0 6px">The rule gave it a machine because {w.choices[0].why}.</p>;
  return (
    <details open><summary>What the rule compared: gains and prices</summary>
      <p class="muted small" style="margin:6px 0">The best batch of every app, or stage, on each kind of machine that was free at that moment. Gains and prices count in answers of the best variant in time, by the weights of the apps. A gain is what the batch brings, less what its queries would be worth if they were left, less the price of the machine's time, less what more urgent queries lose that find no machine meanwhile. The score compares batches of different lengths; the highest begins.</p>
      <div class="scroll" tabIndex={0} role="group" aria-label="What the rule compared"><table>
        <thead><tr><th>For</th><th>Variant</th><th>Machine</th><th class="num">Batch</th><th class="num">Takes</th><th class="num">Gain</th><th class="num">Price per s</th><th class="num">Lost by blocking</th><th class="num">Score</th><th style="min-width:240px">Why</th></tr></thead>
        <tbody>{w.choices.map((x, k) => (
          <tr key={k} class={k === 0 ? 'chosen' : ''}><td>{x.for}</td><td>{x.variant}</td><td>{x.kind}</td>
            <td class="num">{x.queries}<span class="sub">{x.items !== x.queries ? `${x.items} items` : ''}</span></td><td class="num">{millis(x.run_ms)}</td>
            <td class="num">{amount(x.gain)}</td><td class="num">{amount(x.price_per_s)}</td><td class="num">{x.blocks ? amount(x.blocks) : none}</td><td class="num">{amount(x.score)}</td>
            <td>{k === 0 && <Badge kind="good">✓ chosen</Badge>} {x.why}</td></tr>))}</tbody></table></div>
      {w.more ? <p class="muted small">And {w.more} more with lower scores.</p> : null}
    </details>
  );
}

/** Compared shows what could have begun instead of a batch, the batch itself first. */
function Compared({ c }: { c: Comparison }) {
  return (
    <details open><summary>What else could have begun then, and why it did not</summary>
      <p class="muted small" style="margin:6px 0">{c.waiting} {c.waiting === 1 ? 'query' : 'queries'} waited at this stage. {c.spare_ms != null && (c.spare_ms >= 0 ? `The batch could have begun ${millis(c.spare_ms)} later and still be in time.` : `The batch began ${millis(-c.spare_ms)} too late for its first query.`)} Times are those that were believed. Worth counts the answers in time by their accuracy, relative to the best variant's. Too late then are queries left behind that this machine could not serve in time after the batch.</p>
      <div class="scroll" tabIndex={0} role="group" aria-label="What else could have begun"><table>
        <thead><tr><th>Variant</th><th>Machine</th><th class="num">Batch</th><th class="num">Begins after</th><th class="num">Takes</th><th>In time?</th><th class="num">Too late then</th><th class="num">Accuracy</th><th class="num">Worth per s of machine</th><th class="num">Cost per million</th><th style="min-width:240px">Why not</th></tr></thead>
        <tbody>{c.candidates.map((x, k) => (
          <tr key={k} class={x.chosen ? 'chosen' : ''}><td>{x.variant}</td><td>{x.kind}{x.worker && <span class="sub">{x.worker}</span>}</td>
            <td class="num">{x.queries || x.items}<span class="sub">{x.items !== x.queries && x.queries > 0 ? `${x.items} items` : ''}</span></td>
            <td class="num">{x.wait_ms > 0 ? millis(x.wait_ms) : 'at once'}</td><td class="num">{millis(x.run_ms)}</td>
            <td style="white-space:nowrap">{x.spare_ms == null ? none : x.spare_ms >= 0 ? `${millis(x.spare_ms)} to spare` : `${x.in_time} of ${x.queries}, first ${millis(-x.spare_ms)} late`}</td>
            <td class="num">{x.run_ms == null ? none : x.behind}</td>
            <td class="num">{x.accuracy ? percent(x.accuracy) : none}</td><td class="num">{x.worth_per_s == null ? none : rate(x.worth_per_s)}</td>
            <td class="num">{x.cost_per_million == null ? none : dollars(x.cost_per_million)}</td>
            <td>{x.chosen ? <Badge kind="good">✓ chosen</Badge> : x.why_not}</td></tr>))}</tbody></table></div>
    </details>
  );
}
