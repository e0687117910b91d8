import { useEffect, useState } from 'preact/hooks';
import { ask, Refused, useAsk } from '../api';
import { count, dollars, none, percent, rate, time } from '../format';
import { Badge, Problem } from '../parts';
import type { Live } from '../main';
import { AdviceOf } from './advice';
import type { Advice, PlanLine, PlanRow, PlanView } from '../types';

export function PlansView({ live, picked, against }: { live: Live; picked?: string; against: string | null }) {
  const list = useAsk<{ plans: PlanLine[] }>('plans', `${live.epoch}/${live.plans}`); // the view stays while one more is asked for
  const plans = list.data?.plans ?? [];
  const chosen = picked ?? String(plans.find((p) => p.in_force)?.number ?? plans[0]?.number ?? '');
  const one = useAsk<PlanView>(chosen === '' ? null : `plans/${chosen}`, live.epoch);
  const other = useAsk<PlanView>(against ? `plans/${against}` : null, live.epoch);
  if (!list.data) return <><h1>Plans</h1><Problem error={list.error} />{!list.error && <p class="empty">Loading …</p>}</>;
  if (plans.length === 0) return <><h1>Plans</h1><p class="empty">No plan was made yet. The first one is made when the server starts.</p></>;
  return (
    <>
      <h1>Plans</h1>
      <section class="card"><h2>Latest plans</h2>
        <div class="scroll" style="max-height:260px" tabIndex={0} role="region" aria-label="Latest plans"><table>
          <thead><tr><th>Plan</th><th>When</th><th>Why</th><th class="num">Instances</th><th class="num">Loads</th><th class="num">Cost</th><th class="num">Accuracy</th><th class="num">Violations</th><th>State</th></tr></thead>
          <tbody>{plans.map((p) => (
            <tr key={p.number} class={String(p.number) === chosen ? 'chosen' : ''}>
              <td><a href={`#/plans/${p.number}`} aria-current={String(p.number) === chosen ? 'true' : undefined}>{p.number}</a></td>
              <td class="num" style="text-align:left">{time(p.at_s, live.startedMS)}{p.took_s > 0 && <span class="sub">took {p.took_s.toFixed(2)} s</span>}</td><td>{p.why}</td>
              {p.failure ? <td colSpan={5}>{p.failure}</td> : <><td class="num">{count(p.instances)}</td><td class="num">{p.loads}</td><td class="num">{dollars(p.cost_per_hour)}/h</td>
                <td class="num">{p.effective_accuracy ? percent(p.effective_accuracy) : none}</td><td class="num">{percent(p.violation_ratio)}</td></>}
              <td>{p.failure ? <Badge kind="bad">failed</Badge> : p.in_force ? <Badge kind="good">in force</Badge> : p.ignored ? <Badge kind="warn">came too late</Badge> : <Badge kind="plain">replaced</Badge>}</td>
            </tr>))}</tbody>
        </table></div>
      </section>
      <Problem error={one.error} />
      {one.data && !one.data.failure && <Plan p={one.data} plans={plans} other={against ? other.data : undefined} live={live} />}
    </>
  );
}

function Plan({ p, plans, other, live }: { p: PlanView; plans: PlanLine[]; other?: PlanView; live: Live }) {
  const changes = other ? difference(other.rows, p.rows) : p.changes;
  const short = p.apps.filter((a) => (a.shed ?? 0) > 0);
  return (
    <>
      <section class="card"><h2>Plan {p.number}: what it expects</h2>
        {p.choice && <p class="small">{p.choice}</p>}
        <p class="small muted">{p.bound == null ? 'This planner proves no bound.' : `Proven: ${p.bounds_cost ? `no plan costs less than ${dollars(p.bound)}/h` : `no plan has a better objective than ${p.bound}`}; the gap is ${percent(p.gap)}.`} It carries {rate(p.throughput)}/s in all.</p>
        {short.length > 0 && <p class="notice bad">{short.map((a) => `${rate(a.shed)}/s of ${a.name}`).join(', ')} cannot be carried. {p.short ? `It would take ${p.short.map((s) => `${s.more} more ${s.kind}`).join(' and ')}.` : 'More machines, a longer objective or a lower accuracy_floor would mend it: try them under What if.'}</p>}
        <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table><thead><tr><th>App</th><th class="num">Seen</th><th class="num">Planned for</th><th class="num">Carries</th><th class="num">Left out</th><th class="num">Violations</th><th class="num">Accuracy</th></tr></thead>
          <tbody>{p.apps.map((a) => <tr key={a.name}><td><a href={`#/apps/${encodeURIComponent(a.name)}`}>{a.name}</a></td><td class="num">{a.seen == null ? none : `${rate(a.seen)}/s`}</td><td class="num">{a.demand == null ? none : `${rate(a.demand)}/s`}</td><td class="num">{a.capacity == null ? none : `${rate(a.capacity)}/s`}</td>
            <td class="num">{a.shed ? `${rate(a.shed)}/s` : none}</td><td class="num">{percent(a.violation_ratio)}</td><td class="num">{a.effective_accuracy ? percent(a.effective_accuracy) : none}</td></tr>)}</tbody></table></div>
      </section>
      {live.info.what_if && p.apps.some((a) => (a.demand ?? a.seen ?? 0) > 0) && <Diagnosis number={p.number} short={short.length > 0} />}
      <section class="card"><h2>What runs where</h2><Rows rows={p.rows} /></section>
      <section class="card"><h2>What changed</h2>
        <div class="controls"><label>Compared with{' '}
          <select value={other ? String(other.number) : ''} onChange={(e) => { const v = e.currentTarget.value; location.hash = `#/plans/${p.number}${v ? `?against=${v}` : ''}`; }}>
            <option value="">the plan before</option>{plans.filter((x) => x.number !== p.number && !x.failure).map((x) => <option key={x.number} value={x.number}>plan {x.number}</option>)}</select></label></div>
        {changes.length === 0 ? <p class="empty">Nothing: the same instances with the same variants.</p> : (
          <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table><thead><tr><th>App</th><th>Machines</th><th>Variants</th><th class="num">Batch limit</th><th class="num">Before</th><th class="num">Now</th><th class="num">Change</th></tr></thead>
            <tbody>{changes.map((c, k) => <tr key={k}><td>{c.app}{c.stage !== c.app && ` · ${c.stage}`}</td><td>{c.kind}</td><td>{c.variants.join(', ')}</td><td class="num">{c.batch_limit}</td><td class="num">{c.before}</td><td class="num">{c.instances}</td>
              <td class="num">{c.instances > c.before ? '▲ +' : '▼ −'}{Math.abs(c.instances - c.before)}</td></tr>)}</tbody></table></div>)}
      </section>
      {p.trials && p.trials.length > 0 && (
        <section class="card"><h2>Candidates that were simulated</h2>
          <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table><thead><tr><th>Candidate</th><th class="num">Machines</th><th class="num">Cost</th><th class="num">Loads</th><th class="num">Violations</th><th class="num">Accuracy</th><th class="num">Utility</th><th /></tr></thead>
            <tbody>{p.trials.map((t, k) => <tr key={k}><td>{t.candidate}</td><td class="num">{t.machines}</td><td class="num">{dollars(t.cost_per_hour)}/h</td><td class="num">{t.loads}</td><td class="num">{percent(t.violation_ratio)}</td><td class="num">{percent(t.effective_accuracy)}</td><td class="num">{percent(t.utility)}</td><td>{t.adopted && <Badge kind="good">chosen</Badge>}</td></tr>)}</tbody></table></div>
        </section>)}
      {p.budgets && <section class="card"><h2>Budgets of stages</h2><div class="scroll" tabIndex={0} role="group" aria-label="Table"><table><tbody>{p.budgets.map((b) => <tr key={b.app + b.stage}><td>{b.app}</td><td>{b.stage}</td><td class="num">{b.ms} ms</td></tr>)}</tbody></table></div></section>}
    </>
  );
}

/** Diagnosis asks, when somebody wants it, what keeps the plan's demand from being carried and what would mend it. */
function Diagnosis({ number, short }: { number: number; short: boolean }) {
  const [state, set] = useState<{ busy?: boolean; advice?: Advice; notes?: string[]; error?: Error }>({});
  useEffect(() => set({}), [number]);
  const go = () => {
    location.hash = `#/plans/${number}`; // a plan that is made meanwhile is not shown instead
    set({ busy: true });
    ask<{ advice: Advice; notes?: string[] }>('what-if', { plan: number }).then((x) => set({ advice: x.advice, notes: x.notes }), (error) => set({ error }));
  };
  const needs = state.error instanceof Refused && state.error.status === 401;
  return (
    <section class="card"><h2>{short ? 'What keeps the rest from being carried, and what would mend it' : 'How far the machines reach'}</h2>
      <div aria-live="polite">
        {state.error && <Problem error={state.error} />}
        {needs && <p><label>Token of the server's admin_token file{' '}<input type="password" autocomplete="off" onInput={(e) => sessionStorage.setItem('token', e.currentTarget.value)} /></label></p>}
        {state.notes?.map((n) => <p class="notice" key={n}>{n}</p>)}
        {state.advice ? <div id="advice"><AdviceOf a={state.advice} /></div> : <>
          <p class="muted small">The server plans for this demand as <code>sluice plan</code> does, beside serving, in time that nobody else wants. It takes seconds.</p>
          <button class="main" type="button" disabled={state.busy} onClick={go}>{state.busy ? 'Looking …' : short ? 'Find what would mend it' : 'Find the limit'}</button></>}
      </div>
    </section>
  );
}

function Rows({ rows }: { rows: PlanRow[] }) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table"><table><thead><tr><th>App</th><th>Machines</th><th>Variants, the first is used first</th><th class="num">Batch limit</th><th class="num">Instances</th><th class="num">On machines</th><th class="num">Share of traffic</th></tr></thead>
      <tbody>{rows.map((r, k) => <tr key={k}><td>{r.app}{r.stage !== r.app && ` · ${r.stage}`}</td><td>{r.kind}</td><td>{r.variants.join(', ')}</td><td class="num">{r.batch_limit}</td><td class="num">{count(r.instances)}</td><td class="num">{count(r.workers)}</td><td class="num">{percent(r.share, 0)}</td></tr>)}</tbody></table></div>
  );
}

const keyOf = (r: PlanRow) => JSON.stringify([r.app, r.stage, r.kind, r.batch_limit, r.variants]);

function difference(before: PlanRow[], now: PlanRow[]): (PlanRow & { before: number })[] {
  const had = new Map(before.map((r) => [keyOf(r), r]));
  const out = now.flatMap((r) => {
    const n = had.get(keyOf(r))?.instances ?? 0;
    had.delete(keyOf(r));
    return n === r.instances ? [] : [{ ...r, before: n }];
  });
  return [...out, ...[...had.values()].map((r) => ({ ...r, before: r.instances, instances: 0 }))];
}
