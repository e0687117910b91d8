import { useMemo, useState } from 'preact/hooks';
import { useAsk } from '../api';
import { Distribution, HeatMap, TimeChart } from '../charts';
import { factor, millis, none, percent, rate, span } from '../format';
import { Kept, Problem, Tile, series } from '../parts';
import type { Live } from '../main';
import type { AppView as AppData, SeriesReply, Stage } from '../types';

const spans: [string, number, number][] = [['2 min', 120, 1], ['15 min', 900, 1], ['day', 86400, 60]];

export function AppView({ live, name }: { live: Live; name: string }) {
  const [reach, setReach] = useState(live.link === 'saved' ? 1 : 0);
  const every = live.link === 'live' ? 1000 : 0;
  const asked = useAsk<AppData>(`apps/${encodeURIComponent(name)}`, live.epoch, every);
  const [, seconds, step] = spans[reach];
  const from = live.link === 'saved' ? 0 : Math.max(0, Math.floor((live.overview?.now_s ?? asked.data?.hour.span_s ?? 0) - seconds));
  // The path changes with every second, so that the server sends no more than is shown.
  const remembered = step === 60 && live.info.history_ms > 0;
  const past = useAsk<SeriesReply>(remembered ? `history?app=${encodeURIComponent(name)}&step=60` : `series?app=${encodeURIComponent(name)}&step=${step}&from=${step === 60 ? 0 : from}`, live.epoch, step === 60 ? 30000 : 0);
  const kept = useKept(past.data, name, reach);
  const a = asked.data;
  if (!a) return <><h1>{name}</h1><Problem error={asked.error} />{!asked.error && <p class="empty">Loading …</p>}</>;
  const s = kept?.series;
  const w = live.link === 'saved' ? a.hour : a.now;
  const variants = a.graph.flatMap((g) => g.variants.map((v) => v.name));
  const latency = s ? sumLatency(s.latency) : a.latency;
  return (
    <>
      <h1>{a.name} <Kept burn={live.link === 'saved' ? a.burn_hour : a.burn} ended={w.violation_ratio != null} /></h1>
      <div class="tiles">
        <Tile label="Objective" value={millis(a.slo_ms)} note={`for ${a.slo_percentile} % of the queries${a.slo_proposed ? ", proposed" : ""}`} />
        <Tile label="Offered" value={`${rate(w.offered_rate)}/s`} note={a.forecast?.capacity != null ? `the plan carries ${rate(a.forecast.capacity)}/s` : `served ${rate(w.throughput)}/s`} />
        <Tile label="Violations" value={percent(w.violation_ratio)} note={<>late {w.late}, dropped {w.dropped}, refused {w.refused}, failed {w.failed}{a.forecast?.violation_ratio != null && <><br />the plan expects {percent(a.forecast.violation_ratio)}{a.forecast.violation_band && ` (${percent(a.forecast.violation_band[0])} to ${percent(a.forecast.violation_band[1])})`}</>}</>} />
        <Tile label="Error budget left" value={a.burn_hour == null ? none : a.burn_hour <= 1 ? percent(1 - a.burn_hour, 0) : 'used up'} note={`burns ${factor(a.burn)} now, ${factor(a.burn_hour)} over the hour`} />
        <Tile label="Latency p99" value={millis(w.latency_p99_ms)} note={`median ${millis(w.latency_p50_ms)}`} />
        <Tile label="Accuracy" value={percent(w.effective_accuracy)} note={<>{a.accuracy_target ? `target ${percent(a.accuracy_target, 1)}` : `best ${percent(a.best_accuracy, 1)}${a.accuracy_floor && a.stages === 1 ? `, floor ${percent(a.accuracy_floor, 1)}` : ''}`}{w.second_answers != null && <><br />{percent(w.second_answers, 0)} were answered again</>}</>} />
        <Tile label="Mean batch" value={w.mean_batch == null ? none : w.mean_batch.toFixed(1)} note="items" />
      </div>
      <div class="controls"><span class="group" role="group" aria-label="Span of time">{spans.map(([label], k) =>
        <button key={label} aria-pressed={reach === k} onClick={() => setReach(k)}>{label}</button>)}</span>
        <a href={`#/query?app=${encodeURIComponent(name)}`}>Queries that missed the objective</a></div>
      {!s || s.at_s.length === 0 ? <p class="empty">Nothing has happened yet. Send a query: <code>sluice infer {name}</code></p> : (
        <>
          <div class="two">
            <section class="card"><h2>Latency over time</h2>
              <HeatMap at={s.at_s} latency={s.latency} buckets={kept.buckets} objectiveMS={a.slo_ms} startedMS={live.startedMS}
                label={`Latency of ${name} over time; median of the last 10 s ${millis(w.latency_p50_ms)}, 99th percentile ${millis(w.latency_p99_ms)}, objective ${millis(a.slo_ms)}`} /></section>
            <section class="card"><h2>Latency against the objective</h2>
              <Distribution pairs={latency} buckets={a.buckets} objectiveMS={a.slo_ms} /></section>
          </div>
          <div class="two">
            <section class="card"><h2>Answers by variant</h2>
              <TimeChart label="Answers per second by variant" stacked startedMS={live.startedMS} at={s.at_s}
                lines={variants.map((v, k) => ({ label: v, colour: series[k % series.length], values: (s.variants[v] ?? []).map((n) => n / s.step_s) }))} /></section>
            <section class="card"><h2>Where the time goes</h2>
              <TimeChart label="Mean time of a query" stacked format={(x) => millis(x)} startedMS={live.startedMS} at={s.at_s} lines={[
                { label: 'runs', colour: 'c0', values: s.run_ms }, { label: 'waits for a batch', colour: 'c1', values: s.wait_batch_ms },
                { label: 'waits for a machine', colour: 'c3', values: s.wait_instance_ms }]} /></section>
            <section class="card"><h2>Queries per second</h2>
              <TimeChart label="Queries per second" startedMS={live.startedMS} at={s.at_s} lines={[
                { label: 'offered', colour: 'c0', values: s.offered.map((n) => n / s.step_s) }, { label: 'served', colour: 'c2', dash: true, values: s.served.map((n) => n / s.step_s) },
                { label: 'violations', colour: 'c5', fill: true, values: s.violations.map((n) => n / s.step_s) }]} /></section>
            <section class="card"><h2>Batch size</h2>
              <TimeChart label="Mean batch size" startedMS={live.startedMS} at={s.at_s} format={(x) => x.toFixed(1)} lines={[{ label: 'items', colour: 'c2', values: s.mean_batch, fill: true }]} /></section>
          </div>
        </>
      )}
      <section class="card"><h2>{a.graph.length > 1 ? 'Graph of stages' : 'Variants'}</h2>
        {a.graph.length > 1 && <Graph stages={a.graph} />}
        <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table>
          <thead><tr>{a.graph.length > 1 && <th>Stage</th>}<th>Variant</th><th class="num">Accuracy</th><th class="num">Loaded on</th><th class="num">Answers, last minute</th></tr></thead>
          <tbody>{a.graph.flatMap((g) => g.variants.map((v) => (
            <tr key={g.name + v.name}>{a.graph.length > 1 && <td>{g.name}</td>}<td>{v.name}</td><td class="num">{v.accuracy ? percent(v.accuracy) : none}</td><td class="num">{v.held} instances</td><td class="num">{rate(v.rate)}/s</td></tr>)))}
          </tbody></table></div>
        <p class="muted small">Numbers are of {live.link === 'saved' ? `the last ${span(a.hour.span_s)}` : 'the latest 10 s'} where nothing else is said. {a.forecast?.demand != null && `The plan was made for ${rate(a.forecast.demand)}/s.`}</p>
      </section>
    </>
  );
}

/** useKept keeps the last answer of the same app and span while the next one is on its way. */
function useKept(reply: SeriesReply | undefined, name: string, reach: number): SeriesReply | undefined {
  const [kept] = useState<{ key?: string; reply?: SeriesReply }>({});
  const key = `${name}/${reach}`;
  if (kept.key !== key) { kept.key = key; kept.reply = undefined; }
  if (reply && reply.app === name && reply.series.step_s === spans[reach][2]) kept.reply = reply;
  return kept.reply;
}

function sumLatency(columns: number[][]): number[] {
  const sums = new Map<number, number>();
  for (const c of columns) for (let k = 0; k < c.length; k += 2) sums.set(c[k], (sums.get(c[k]) ?? 0) + c[k + 1]);
  return [...sums].sort((x, y) => x[0] - y[0]).flat();
}

/** Graph draws the stages of an app from left to right, with rates, budgets and fan-outs. */
function Graph({ stages }: { stages: Stage[] }) {
  const at = useMemo(() => {
    const depth = new Map<string, number>();
    for (const s of stages) { // topological order
      const d = depth.get(s.name) ?? 0;
      depth.set(s.name, d);
      for (const e of s.next) depth.set(e.to, Math.max(depth.get(e.to) ?? 0, d + 1));
    }
    const rows = new Map<number, number>();
    return new Map(stages.map((s) => {
      const d = depth.get(s.name)!, row = rows.get(d) ?? 0;
      rows.set(d, row + 1);
      return [s.name, { x: d * 280 + 10, y: row * 92 + 10 }] as const;
    }));
  }, [stages.map((s) => s.name + s.next.map((e) => e.to)).join()]);
  const width = Math.max(...[...at.values()].map((p) => p.x)) + 180, height = Math.max(...[...at.values()].map((p) => p.y)) + 80;
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Picture"><svg width={width} height={height} role="img" aria-label={`Graph: ${stages.map((s) => `${s.name} at ${rate(s.rate)}/s${s.next.length > 0 ? ` to ${s.next.map((e) => e.to).join(' and ')}` : ''}`).join('; ')}`}>
      {stages.flatMap((s) => s.next.map((e) => {
        const a = at.get(s.name)!, b = at.get(e.to)!;
        const x1 = a.x + 168, y1 = a.y + 33, x2 = b.x, y2 = b.y + 33, mid = (x1 + x2) / 2;
        return <g key={s.name + e.to}><path d={`M${x1} ${y1} C${mid} ${y1} ${mid} ${y2} ${x2} ${y2}`} fill="none" stroke="var(--muted)" stroke-width="1.6" />
          <path d={`M${x2 - 7} ${y2 - 4} L${x2} ${y2} L${x2 - 7} ${y2 + 4}`} fill="none" stroke="var(--muted)" stroke-width="1.6" />
          <text x={mid} y={(y1 + y2) / 2 - 7} text-anchor="middle">{rate(s.rate * e.fan_out)}/s</text>
          <text x={mid} y={(y1 + y2) / 2 + 16} text-anchor="middle" class="dim">{e.fan_out.toFixed(1)} for each</text></g>;
      }))}
      {stages.map((s) => {
        const p = at.get(s.name)!;
        return <g key={s.name}><rect x={p.x} y={p.y} width="168" height="66" rx="7" fill="var(--ground)" stroke="var(--line)" />
          <text x={p.x + 10} y={p.y + 20} font-weight="600">{s.name}</text>
          <text x={p.x + 10} y={p.y + 38}>{rate(s.rate)} tasks/s</text>
          <text x={p.x + 10} y={p.y + 55} class="dim">{s.budget_ms != null ? `budget ${millis(s.budget_ms)}, ` : ''}{s.ready} ready</text></g>;
      })}
    </svg></div>
  );
}
