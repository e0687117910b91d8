import { useState } from 'preact/hooks';
import { useAsk } from '../api';
import { TimeChart } from '../charts';
import { dollars, millis, none, percent, rate } from '../format';
import { Badge, Problem, series } from '../parts';
import type { Live } from '../main';

interface Point { at_s: number; offered: number; served: number; late: number; dropped: number; refused: number; failed: number; accuracy?: number; p99_ms?: number }
interface Summary {
  offered: number; offered_rate: number; throughput: number; violation_ratio: number; effective_accuracy?: number;
  latency: { p50_ms: number; p99_ms: number }; cost_per_hour?: number; utility?: number; mean_batch?: number;
}
interface Report { name?: string; duration_s: number; overall: Summary; apps: (Summary & { name: string; slo_ms?: number; variants?: { name: string; share: number }[] })[]; series: Point[] }
interface Row {
  paper: string; figure: string; system: string; quantity: string; unit: string; setting: Record<string, string>;
  published: number | null; measured: number; low: number; high: number; seeds: number; source?: string; note?: string;
}
interface Figures { reports: { name: string; report: Report }[]; figures: { name: string; rows: Row[]; title?: string; about?: Record<string, string> }[] }

/** FiguresView shows saved reports side by side, and what reproduce measured beside what was published. */
export function FiguresView({ live, name }: { live: Live; name: string }) {
  const asked = useAsk<Figures>('figures', live.epoch);
  const d = asked.data;
  if (!d) return <><h1>Figures</h1><Problem error={asked.error} />{!asked.error && <p class="empty">Loading …</p>}</>;
  const all = d.figures.flatMap((f) => group(f.rows).map(([figure, rows]) => ({ key: `${rows[0].paper}-${figure}`, rows, figure, title: f.title, about: f.about?.[figure] })));
  const chosen = all.find((x) => x.key === decodeURIComponent(name)) ?? all[0];
  return (
    <>
      <h1>{d.reports.length > 0 && all.length === 0 ? 'Runs' : 'Figures'}</h1>
      {d.reports.length > 0 && <Reports reports={d.reports.slice(0, 8)} more={Math.max(0, d.reports.length - 8)} />}
      {all.length > 0 && (
        <nav class="controls" aria-label="Figures">{all.map((x) => <a key={x.key} href={`#/figures/${encodeURIComponent(x.key)}`} aria-current={x === chosen ? 'page' : undefined}
          style={x === chosen ? 'font-weight:700' : ''}>{x.rows[0].paper}, figure {x.figure}</a>)}</nav>)}
      {chosen && <Figure key={chosen.key} rows={chosen.rows} figure={chosen.figure} title={chosen.title} about={chosen.about} />}
      {d.reports.length === 0 && all.length === 0 && <p class="empty">There are no figures here: <code>sluice reproduce PAPER --out FOLDER</code> writes some.</p>}
    </>
  );
}

function Reports({ reports, more }: { reports: { name: string; report: Report }[]; more: number }) {
  const apps = [...new Set(reports.flatMap((r) => r.report.apps.map((a) => a.name)))];
  const at = reports.map((r) => r.report.series).reduce((a, b) => (a.length >= b.length ? a : b), []).map((p) => p.at_s);
  const pad = (list: (number | null)[]) => [...list, ...new Array<null>(Math.max(0, at.length - list.length)).fill(null)];
  const bad = (p: Point) => p.late + p.dropped + p.refused + p.failed;
  const lines = (f: (p: Point) => number | null) => reports.map((r, k) => ({ label: r.name, colour: series[k % series.length], values: pad(r.report.series.map(f)), dash: k % 2 === 1 }));
  const cell = (f: (s: Summary) => string, of: (r: Report) => Summary | undefined) => reports.map((r) => { const s = of(r.report); return <td class="num" key={r.name}>{s ? f(s) : none}</td>; });
  const rows: [string, (s: Summary) => string][] = [
    ['Offered', (s) => `${rate(s.offered_rate)}/s`], ['Violations', (s) => percent(s.violation_ratio)], ['Latency p99', (s) => millis(s.latency.p99_ms)],
    ['Accuracy', (s) => percent(s.effective_accuracy)], ['Utility', (s) => percent(s.utility)], ['Cost per hour', (s) => dollars(s.cost_per_hour)]];
  return (
    <section class="card"><h2>Runs side by side</h2>
      <div class="scroll" tabIndex={0} role="group" aria-label="Runs"><table>
        <thead><tr><th />{reports.map((r) => <th class="num" key={r.name}>{r.name}</th>)}</tr></thead>
        <tbody>{rows.map(([label, f]) => <tr key={label}><td>{label}</td>{cell(f, (r) => r.overall)}</tr>)}
          {apps.length > 1 && apps.flatMap((a) => [<tr key={a}><th colSpan={reports.length + 1} scope="rowgroup" style="padding-top:12px;color:var(--text)">{a}</th></tr>,
            ...rows.slice(0, 4).map(([label, f]) => <tr key={a + label}><td>{label}</td>{cell(f, (r) => r.apps.find((x) => x.name === a))}</tr>)])}
        </tbody></table></div>
      {more > 0 && <p class="muted">{more} more reports are in this folder.</p>}
      {at.length > 1 && <div class="two" style="margin-top:14px">
        <div><h3>Violations per second</h3><TimeChart label="Violations per second" startedMS={0} at={at} lines={lines(bad)} /></div>
        <div><h3>Accuracy of answers</h3><TimeChart label="Accuracy of answers" startedMS={0} at={at} max={1} format={(x) => percent(x, 0)} lines={lines((p) => p.accuracy ?? null)} /></div>
        <div><h3>Queries offered per second</h3><TimeChart label="Queries offered per second" startedMS={0} at={at} lines={lines((p) => p.offered)} /></div>
        <div><h3>Latency p99</h3><TimeChart label="Latency, 99th percentile" startedMS={0} at={at} format={(x) => millis(x)} lines={lines((p) => p.p99_ms ?? null)} /></div>
      </div>}
    </section>
  );
}

function group(rows: Row[]): [string, Row[]][] {
  const out = new Map<string, Row[]>();
  for (const r of rows) out.set(r.figure, [...(out.get(r.figure) ?? []), r]);
  return [...out];
}

/** Figure draws every number as a bar from nothing, its spread over the seeds, and the published one as a mark. What is
 * the same for all rows stands once above them, what differs can be chosen. */
function Figure({ rows, figure, title, about }: { rows: Row[]; figure: string; title?: string; about?: string }) {
  const [chosen, setChosen] = useState<Record<string, string>>({});
  const [beside, setBeside] = useState(false);
  const keys = [...new Set(rows.flatMap((r) => Object.keys(r.setting ?? {})))];
  const choices = [['quantity', [...new Set(rows.map((r) => r.quantity))]] as const,
    ...keys.map((k) => [k, [...new Set(rows.map((r) => r.setting?.[k] ?? ''))]] as const)];
  const same = choices.filter(([k, list]) => k !== 'quantity' && list.length === 1);
  const differ = choices.filter(([, list]) => list.length > 1);
  const value = (r: Row, k: string) => (k === 'quantity' ? r.quantity : r.setting?.[k] ?? '');
  const left = rows.filter((r) => differ.every(([k]) => !chosen[k] || value(r, k) === chosen[k]) && (!beside || r.published != null));
  const blocks = new Map<string, Row[]>();
  for (const r of left) {
    const key = `${r.quantity}\u0000${differ.filter(([k]) => k !== 'quantity' && value(r, k)).map(([k]) => `${k} ${value(r, k)}`).join(', ')}`;
    blocks.set(key, [...(blocks.get(key) ?? []), r]);
  }
  const sources = [...new Set(rows.flatMap((r) => (r.source ? [r.source] : [])))];
  const spread = rows.some((r) => r.seeds > 1);
  const unpublished = !rows.some((r) => r.published != null);
  return (
    <section><h2>{rows[0].paper}, figure {figure}{about ? `: ${about}` : ''}</h2>
      {title && <p class="muted" style="margin:0 0 8px">{title}</p>}
      {same.length > 0 && <p class="muted small" style="margin:0 0 8px">For all: {same.map(([k, [v]]) => `${k} ${v}`).join(', ')}</p>}
      {(differ.length > 0 || !unpublished) && <div class="controls">{differ.map(([k, list]) => (
        <label key={k}>{k}<br /><select value={chosen[k] ?? ''} onChange={(e) => setChosen({ ...chosen, [k]: e.currentTarget.value })}>
          <option value="">all</option>{list.map((v) => <option key={v} value={v}>{v || 'none'}</option>)}</select></label>))}
        {!unpublished && <label><input type="checkbox" checked={beside} onChange={(e) => setBeside(e.currentTarget.checked)} /> only what was published, too</label>}</div>}
      <div class="legend"><span><i style="background:var(--c0)" />measured{spread ? ', with the spread over seeds' : ', one seed'}</span>
        {!unpublished && <span><i style="background:var(--c5);width:3px" />published{sources.length > 0 ? ` (${sources.join('; ')})` : ''}</span>}</div>
      {left.length === 0 && <p class="empty">No number has all of this. Choose “all” somewhere.</p>}
      <div class="two">{[...blocks].map(([key, list]) => {
        const [quantity, setting] = key.split('\u0000');
        const most = (Math.max(...list.flatMap((r) => [r.high, r.published ?? 0])) || 1) * 1.02, w = 300, published = list.some((r) => r.published != null);
        return (
          <section class="card" key={key}><h3 style="margin-top:0">{quantity}{list[0].unit ? `, ${list[0].unit}` : ''}</h3>{setting && <p class="muted small" style="margin:0 0 6px">{setting}</p>}
            <table><thead><tr><th>System</th><th style="width:56%"><span class="unseen">Bar</span></th><th class="num">Measured</th>{published && <th class="num">Published</th>}</tr></thead><tbody>{list.map((r, k) => (
              <tr key={k}><td>{r.system}</td>
                <td>{r.note ? <Badge kind="plain">{r.note}</Badge> : <svg viewBox={`0 0 ${w} 18`} width="100%" height="18" preserveAspectRatio="none" role="img" aria-label={`measured ${show(r.measured)}${r.published != null ? `, published ${show(r.published)}` : ''}`}>
                  <title>{`${r.system}: ${show(r.measured)} (${show(r.low)} to ${show(r.high)}, ${r.seeds} ${r.seeds === 1 ? 'seed' : 'seeds'})${r.published != null ? `; published ${show(r.published)}` : ''}`}</title>
                  <rect x="0" y="3" height="12" width={Math.max(0.5, (r.measured / most) * w)} fill="var(--c0)" />
                  {r.high > r.low && <line x1={(r.low / most) * w} x2={(r.high / most) * w} y1="9" y2="9" stroke="var(--text)" stroke-width="1.5" vector-effect="non-scaling-stroke" />}
                  {r.published != null && <line x1={(r.published / most) * w} x2={(r.published / most) * w} y1="0" y2="18" stroke="var(--c5)" stroke-width="3" vector-effect="non-scaling-stroke" />}</svg>}</td>
                <td class="num">{r.note ? none : show(r.measured)}</td>{published && <td class="num">{r.published == null ? none : show(r.published)}</td>}</tr>))}</tbody></table></section>);
      })}</div>
    </section>
  );
}

function show(x: number): string { return Math.abs(x) >= 100 ? Math.round(x).toLocaleString('en') : String(Number(x.toPrecision(4))); }
