import { useEffect, useState } from 'preact/hooks';
import { ask, Refused, useAsk } from '../api';
import { TimeChart } from '../charts';
import { count, dollars, millis, none, percent, rate, span } from '../format';
import { Problem, series } from '../parts';
import type { Live } from '../main';
import { AdviceOf } from './advice';
import type { Advice, AppChange, Change, Window } from '../types';

interface Setting {
  system: string; systems: string[]; budget?: number;
  apps: { name: string; slo_ms: number; accuracy_floor: number; accuracy_target: number; best_accuracy: number }[];
  machines: { name: string; kind: string; count: number }[];
}
interface Summary {
  offered: number; served: number; offered_rate: number; violation_ratio: number; effective_accuracy?: number;
  latency: { p50_ms: number; p99_ms: number }; cost_per_hour?: number; utilisation?: number; mean_batch?: number;
}
interface Point { at_s: number; offered: number; served: number; late: number; dropped: number; refused: number; failed: number; accuracy?: number; p99_ms?: number }
interface Report { name: string; overall: Summary; apps: (Summary & { name: string; slo_ms: number; slo_percentile: number; series?: Point[] })[]; series: Point[] }
interface Plan { planner: string; cost_per_hour: number; machines: Record<string, number>; shed: number; shortage?: Record<string, number> }
interface Answer {
  span_s: number; queries: number; before: Report; after: Report; plan_before: Plan; plan_after: Plan; configuration: string;
  notes?: string[]; was: Record<string, Window>; took_s: number; advice?: Advice;
}

/** asked reads a change from the address; one that cannot be read is none. */
function asked(text: string | null): Change {
  try {
    const c = JSON.parse(text ?? '{}');
    return c && typeof c === 'object' && !Array.isArray(c) ? c as Change : {};
  } catch {
    return {};
  }
}

/** merged is a change with another one on top. */
function merged(a: Change, b: Change): Change {
  const apps = { ...a.apps };
  for (const [name, c] of Object.entries(b.apps ?? {})) apps[name] = { ...apps[name], ...c };
  const out = { ...a, ...b, machines: { ...a.machines, ...b.machines }, apps };
  for (const key of ['apps', 'machines'] as const) if (Object.keys(out[key]!).length === 0) delete out[key];
  return out;
}

export function WhatIfView({ live, wanted }: { live: Live; wanted: string | null }) {
  const setting = useAsk<Setting>('setting', live.epoch);
  const [change, setChange] = useState<Change>(() => asked(wanted));
  useEffect(() => { if (wanted) setChange(asked(wanted)); }, [wanted]);
  const [spanS, setSpan] = useState(120);
  const [answer, setAnswer] = useState<{ busy?: boolean; error?: Error; data?: Answer }>({});
  const [needs, setNeeds] = useState(false);
  const s = setting.data;
  useEffect(() => setAnswer({}), [live.epoch]);
  if (!s) return <><h1>What if</h1><Problem error={setting.error} />{!setting.error && <p class="empty">Loading …</p>}</>;
  const go = () => {
    setAnswer((a) => ({ busy: true, data: a.data }));
    ask<Answer>('what-if', { span_s: spanS, change }).then(
      (data) => setAnswer({ data }),
      (error) => { setNeeds(error instanceof Refused && error.status === 401); setAnswer((a) => ({ error, data: a.data })); });
  };
  const app = (name: string, key: keyof AppChange, value: number | undefined) => {
    const apps = { ...change.apps, [name]: { ...change.apps?.[name], [key]: value } };
    setChange({ ...change, apps });
  };
  const machines = (name: string, n: number) => setChange({ ...change, machines: { ...change.machines, [name]: n } });
  const changed = JSON.stringify(change) !== '{}';
  return (
    <>
      <h1>What if</h1>
      <p class="muted" style="margin-top:-8px">The server plans anew and simulates the arrivals of the latest minutes with your change, beside serving, in time that nobody else wants. Nothing that serves is changed.</p>
      <form onSubmit={(e) => { e.preventDefault(); go(); }}>
        {s.apps.map((a) => {
          const c = change.apps?.[a.name] ?? {};
          return (
            <fieldset class="card" key={a.name}><legend><b>{a.name}</b></legend>
              <div class="sliders">
                <Slider label="Load" min={0} max={8} step={0.1} value={c.load ?? 1} show={(x) => `${x.toFixed(1)} times`} set={(v) => app(a.name, 'load', v)} />
                <Slider label="Objective" min={Math.max(1, a.slo_ms / 10)} max={Math.max(a.slo_ms * 4, c.slo_ms ?? 0)} step={a.slo_ms / 50} value={c.slo_ms ?? a.slo_ms} show={millis} set={(v) => app(a.name, 'slo_ms', Math.round(v * 10) / 10)} />
                <Slider label="Least accuracy of an answer" min={0} max={a.best_accuracy} step={0.005} value={c.accuracy_floor ?? a.accuracy_floor} show={(x) => (x === 0 ? 'none' : percent(x, 1))} set={(v) => app(a.name, 'accuracy_floor', v)} />
                <Slider label="Mean accuracy to keep" min={0} max={a.best_accuracy} step={0.005} value={c.accuracy_target ?? a.accuracy_target} show={(x) => (x === 0 ? 'as high as can be' : percent(x, 1))} set={(v) => app(a.name, 'accuracy_target', v)} />
              </div>
            </fieldset>);
        })}
        <fieldset class="card"><legend><b>Machines and system</b></legend>
          <div class="sliders">
            {s.machines.map((m) => <Slider key={m.name} label={`${m.name}${m.kind && m.kind !== m.name ? ` (${m.kind})` : ''}`} min={0} max={Math.max(8, m.count * 3, change.machines?.[m.name] ?? 0)} step={1} value={change.machines?.[m.name] ?? m.count} show={(x) => `${x}`} set={(v) => machines(m.name, v)} />)}
            <label>System<br /><select value={change.system ?? ''} onChange={(e) => setChange({ ...change, system: e.currentTarget.value || undefined })}>
              <option value="">{s.system}, as it is</option>{s.systems.filter((x) => x !== s.system).map((x) => <option key={x}>{x}</option>)}</select></label>
            <label>Budget in $/h, for systems that rent<br /><input type="number" min="0" step="0.01" value={change.budget ?? ''} placeholder={s.budget ? String(s.budget) : 'none'} onInput={(e) => setChange({ ...change, budget: e.currentTarget.value === '' ? undefined : Number(e.currentTarget.value) })} /></label>
            <label>Arrivals of the latest<br /><select value={spanS} onChange={(e) => setSpan(Number(e.currentTarget.value))}>{[30, 60, 120, 300, 600].map((x) => <option key={x} value={x}>{span(x)}</option>)}</select></label>
          </div>
        </fieldset>
        {needs && (
          <p class="card"><label>Token of the server's admin_token file{' '}<input type="password" autocomplete="off" onInput={(e) => sessionStorage.setItem('token', e.currentTarget.value)} /></label>{' '}
            <span class="muted small">It stays in this tab, and is sent with questions like this one.</span></p>)}
        <div class="controls"><button class="main" type="submit" disabled={answer.busy || live.link === 'lost'}>{answer.busy ? 'Simulating …' : 'What would happen?'}</button>
          <button type="button" disabled={!changed} onClick={() => setChange({})}>As it is</button></div>
      </form>
      <div aria-live="polite">
        <Problem error={answer.error} />
        {answer.data && <Result a={answer.data} onTry={(c) => { setChange(merged(change, c)); document.querySelector('form')?.scrollIntoView(); }} />}
      </div>
    </>
  );
}

function Slider(p: { label: string; min: number; max: number; step: number; value: number; show: (x: number) => string; set: (x: number) => void }) {
  return <label>{p.label}<output>{p.show(p.value)}</output><input type="range" min={p.min} max={p.max} step={p.step} value={p.value} aria-valuetext={p.show(p.value)} onInput={(e) => p.set(Number(e.currentTarget.value))} /></label>;
}

function Result({ a, onTry }: { a: Answer; onTry: (c: Change) => void }) {
  const [copied, setCopied] = useState('');
  const copy = () => navigator.clipboard?.writeText(a.configuration).then(() => setCopied('copied'), () => setCopied('mark the text and copy it'));
  const bad = (p: Point) => p.late + p.dropped + p.refused + p.failed;
  const seconds = (r: Report, f: (p: Point) => number | null) => r.series.map(f);
  const at = (a.before.series.length >= a.after.series.length ? a.before : a.after).series.map((p) => p.at_s);
  const pad = (list: (number | null)[]) => [...list, ...new Array<null>(at.length - list.length).fill(null)];
  const machines = (p: Plan) => Object.entries(p.machines).map(([k, n]) => `${n} ${k}`).join(', ') || none;
  return (
    <section class="card" id="answer">
      <h2>{count(a.queries)} arrivals of {span(a.span_s)}; the answer took {a.took_s.toFixed(1)} s</h2>
      {a.notes?.map((n) => <p class="notice" key={n}>{n}</p>)}
      {a.before.apps.map((b) => {
        const off = difference(a.was[b.name], b);
        return off && <p class="notice bad" key={b.name}>{b.name}: the simulator is off by {off} from what was seen. Other programs on the machines, or an old profile, have this effect. What it says of the change may be off as much.</p>;
      })}
      {a.advice && !a.advice.carried ? <AdviceOf a={a.advice} onTry={onTry} /> : a.plan_after.shed > 0 && <p class="notice bad">The plan would leave out {rate(a.plan_after.shed)}/s. {Object.entries(a.plan_after.shortage ?? {}).map(([k, n]) => `${n} more ${k}`).join(' and ')}{a.plan_after.shortage && Object.keys(a.plan_after.shortage).length > 0 ? ' would carry it.' : ''}</p>}
      <div class="scroll" tabIndex={0} role="group" aria-label="Comparison"><table>
        <thead><tr><th /><th class="num">As it was, seen</th><th class="num">As it was, simulated</th><th class="num">With the change, simulated</th></tr></thead>
        <tbody>
          {a.before.apps.flatMap((b, k) => {
            const w = a.was[b.name], n = a.after.apps[k];
            return [
              <tr key={b.name}><th colSpan={4} scope="rowgroup" style="padding-top:12px;color:var(--text)">{b.name}</th></tr>,
              row('Queries offered', rate, w?.offered_rate, b.offered_rate, n?.offered_rate, '/s'),
              row('Violations', percent, w?.violation_ratio, b.violation_ratio, n?.violation_ratio),
              row('Latency p99', millis, w?.latency_p99_ms, b.latency.p99_ms, n?.latency.p99_ms),
              row('Accuracy', percent, w?.effective_accuracy, b.effective_accuracy, n?.effective_accuracy),
            ];
          })}
          <tr><th colSpan={4} scope="rowgroup" style="padding-top:12px;color:var(--text)">In all</th></tr>
          {row('Cost per hour', dollars, null, a.before.overall.cost_per_hour, a.after.overall.cost_per_hour)}
          {row('Machines’ time used', percent, null, a.before.overall.utilisation, a.after.overall.utilisation)}
          <tr><td>Machines in the first plan</td><td class="num">{none}</td><td class="num">{machines(a.plan_before)}</td><td class="num">{machines(a.plan_after)}</td></tr>
        </tbody></table></div>
      <div class="two" style="margin-top:14px">
        <div><h3>Violations per second</h3><TimeChart label="Violations per second" startedMS={0} at={at} lines={[{ label: 'as it was, simulated', colour: series[0], values: pad(seconds(a.before, bad)), dash: true }, { label: 'with the change', colour: series[5], values: pad(seconds(a.after, bad)) }]} /></div>
        <div><h3>Accuracy of answers</h3><TimeChart label="Accuracy of answers" startedMS={0} at={at} max={1} format={(x) => percent(x, 0)} lines={[{ label: 'as it was, simulated', colour: series[0], values: pad(seconds(a.before, (p) => p.accuracy ?? null)), dash: true }, { label: 'with the change', colour: series[5], values: pad(seconds(a.after, (p) => p.accuracy ?? null)) }]} /></div>
      </div>
      {a.advice?.carried && <><h3>How far the machines reach</h3><AdviceOf a={a.advice} onTry={onTry} /></>}
      <h3>As configuration</h3>
      <pre tabIndex={0}>{a.configuration}</pre>
      <button type="button" onClick={copy}>Copy as configuration</button> <span role="status" class="muted small">{copied}</span>
    </section>
  );
}

/** difference says by how much a simulated run is off from what was seen, where that is more than predictions should be. */
function difference(was: Window | undefined, b: Summary): string {
  const out: string[] = [];
  if (!was) return '';
  if (was.violation_ratio != null && Math.abs(was.violation_ratio - b.violation_ratio) > 0.01) {
    out.push(`${(100 * Math.abs(was.violation_ratio - b.violation_ratio)).toFixed(1)} points of violations`);
  }
  if (was.latency_p99_ms && b.served > 0 && Math.abs(b.latency.p99_ms / was.latency_p99_ms - 1) > 0.15) {
    out.push(`${(100 * Math.abs(b.latency.p99_ms / was.latency_p99_ms - 1)).toFixed(0)} % at the 99th percentile`);
  }
  return out.join(' and ');
}

function row(label: string, format: (x: number | null | undefined) => string, was: number | null | undefined, before: number | null | undefined, after: number | null | undefined, unit = '') {
  const show = (x: number | null | undefined) => (x == null ? none : format(x) + unit);
  return <tr key={label}><td>{label}</td><td class="num">{show(was)}</td><td class="num">{show(before)}</td><td class="num"><b>{show(after)}</b></td></tr>;
}
