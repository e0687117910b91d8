import { useAsk } from '../api';
import { Spark, TimeChart } from '../charts';
import { count, dollars, factor, millis, none, percent, rate, span, time } from '../format';
import { Badge, Kept, Problem, Tile } from '../parts';
import type { Live } from '../main';
import type { AppNow, Overview, SeriesReply } from '../types';

export function OverviewView({ live }: { live: Live }) {
  const asked = useAsk<Overview>('overview', live.epoch);
  const history = useAsk<SeriesReply>('series?from=0', live.epoch, live.link === 'live' ? 5000 : 0);
  const o = live.overview && asked.data && live.overview.now_s > asked.data.now_s ? live.overview : asked.data;
  if (!o) return <><h1>Overview</h1><Problem error={asked.error} />{!asked.error && <p class="empty">Loading …</p>}</>;
  const saved = live.link === 'saved';
  const w = saved ? o.hour : o.now;
  const s = history.data?.series;
  const tail = s ? Math.max(0, s.at_s.length - (saved ? 900 : 300)) : 0;
  const apps = o.apps.filter((a) => !a.closed);
  const missed = apps.filter((a) => (a.burn ?? 0) > 1).length;
  return (
    <>
      <h1>Overview</h1>
      {live.link === 'lost' && <p class="notice">The numbers below are from before the connection was lost.</p>}
      <div class="tiles">
        <Tile label="Objectives" value={missed > 0 ? `${missed} missed` : apps.some((a) => a.burn != null) ? 'all kept' : none} note={`${apps.length} app${apps.length === 1 ? '' : 's'}, ${saved ? 'at the end' : 'latest 10 s'}`} />
        <Tile label="Offered" value={`${rate(w.offered_rate)}/s`} note={`served ${rate(w.throughput)}/s`} />
        <Tile label="Violations" value={percent(w.violation_ratio)} note={`last hour ${percent(o.hour.violation_ratio)}`} />
        <Tile label="Accuracy" value={percent(w.effective_accuracy)} note={`last hour ${percent(o.hour.effective_accuracy)}`} />
        <Tile label="Latency p99" value={millis(w.latency_p99_ms)} note={`median ${millis(w.latency_p50_ms)}`} />
        <Tile label="Cost" value={`${dollars(o.cost_per_hour)}/h`} note={o.cost_per_million == null ? undefined : `${dollars(o.cost_per_million)} per million`} />
        <Tile label="Machines" value={`${o.workers_used} of ${o.workers}`} note={`${percent(o.utilisation, 0)} of their time used`} />
      </div>
      <section class="card" aria-labelledby="apps">
        <h2 id="apps">Apps</h2>
        {apps.length === 0 ? <p class="empty">No app is served. Deploy one with <code>sluice deploy</code>, or list one in sluice.yaml.</p> : (
          <table class="cards">
            <thead><tr>
              <th>App</th><th>Objective</th><th>Violations</th><th>Error budget, last hour</th><th class="num">Offered</th><th class="num">Latency p99</th>
              <th class="num">Accuracy</th><th>The plan expects</th><th>{saved ? '' : 'Last 90 s'}</th>
            </tr></thead>
            <tbody>{apps.map((a) => <AppRow key={a.name} a={a} live={live} saved={saved} />)}</tbody>
          </table>
        )}
      </section>
      {s && s.at_s.length > 1 && (
        <div class="two">
          <section class="card"><h2>Queries per second, all apps</h2>
            <TimeChart label="Queries per second" startedMS={live.startedMS} at={s.at_s.slice(tail)} lines={[
              { label: 'offered', colour: 'c0', values: s.offered.slice(tail) }, { label: 'served', colour: 'c2', values: s.served.slice(tail), dash: true },
              { label: 'violations', colour: 'c5', values: s.violations.slice(tail), fill: true }]} />
          </section>
          <section class="card"><h2>Use of machines</h2>
            <TimeChart label="Share of the machines' time in use" startedMS={live.startedMS} at={s.at_s.slice(tail)} max={1}
              format={(x) => percent(x, 0)} lines={[{ label: 'used', colour: 'c0', values: s.utilisation.slice(tail), fill: true }]} />
          </section>
        </div>
      )}
      {o.plan && (
        <section class="card"><h2>Plan in force</h2>
          <p style="margin:0"><a href={`#/plans/${o.plan.number}`}>Plan {o.plan.number}</a> by {o.plan.planner}, {time(o.plan.at_s, live.startedMS)}: {count(o.plan.instances)} instances,
            {' '}{dollars(o.plan.cost_per_hour)}/h; why: {o.plan.why}. {o.plan.shed > 0 && <Badge kind="bad">leaves out {rate(o.plan.shed)}/s</Badge>}</p>
          {o.plan.choice && <p class="muted small" style="margin:6px 0 0">{o.plan.choice}</p>}
        </section>
      )}
    </>
  );
}

function AppRow({ a, live, saved }: { a: AppNow; live: Live; saved: boolean }) {
  const w = saved ? a.hour : a.now;
  const allowed = 1 - a.slo_percentile / 100;
  const f = a.forecast;
  const spark = live.sparks.get(a.name);
  const left = a.burn_hour == null ? null : 1 - a.burn_hour;
  return (
    <tr>
      <td data-label="App"><a href={`#/apps/${encodeURIComponent(a.name)}`}>{a.name}</a>{a.stages > 1 && <span class="sub">{a.stages} stages</span>}</td>
      <td data-label="Objective"><Kept burn={saved ? a.burn_hour : a.burn} ended={w.violation_ratio != null} /><span class="sub">{a.slo_percentile} % within {millis(a.slo_ms)}{a.slo_proposed && ', proposed'}</span></td>
      <td data-label="Violations">{percent(w.violation_ratio)}<span class="sub">last hour {percent(a.hour.violation_ratio)}, allowed {percent(allowed, 1)}</span></td>
      <td data-label="Error budget, last hour">
        {a.burn_hour == null ? none : <>
          <div class={a.burn_hour > 1 ? 'bar over' : 'bar'} role="img" aria-label={`${percent(Math.min(1, a.burn_hour), 0)} of the error budget used`}><i style={{ width: `${Math.min(100, a.burn_hour * 100)}%` }} /></div>
          <span class="sub">{left! >= 0 ? `${percent(left, 0)} left` : `used ${factor(a.burn_hour)}`}{a.burn != null && `, burning ${factor(a.burn)}`}</span></>}
      </td>
      <td data-label="Offered" class="num">{rate(w.offered_rate)}/s<span class="sub">{saved ? `over ${span(w.span_s)}` : `${count(a.waiting)} waiting`}</span></td>
      <td data-label="Latency p99" class="num">{millis(w.latency_p99_ms)}<span class="sub">median {millis(w.latency_p50_ms)}</span></td>
      <td data-label="Accuracy" class="num">{percent(w.effective_accuracy)}
        <span class="sub">{a.accuracy_target ? `target ${percent(a.accuracy_target, 1)}` : a.accuracy_floor && a.stages === 1 ? `floor ${percent(a.accuracy_floor, 1)}` : `best ${percent(a.best_accuracy, 1)}`}</span></td>
      <td data-label="The plan expects">{f ? <>{f.capacity != null ? `carries ${rate(f.capacity)}/s` : f.demand != null ? `${rate(f.demand)}/s` : none}
        <span class="sub">{f.violation_ratio == null ? '' : `violations ${percent(f.violation_ratio)}${f.violation_band ? ` (${percent(f.violation_band[0])} to ${percent(f.violation_band[1])})` : ''}`}
          {f.violation_ratio != null && f.effective_accuracy ? ', ' : ''}{f.effective_accuracy ? `accuracy ${percent(f.effective_accuracy)}` : ''}</span></> : none}</td>
      <td class="wide" data-label={saved ? '' : 'Last 90 s'}>{!saved && <Spark values={spark?.offered.slice() ?? []} wrong={spark?.wrong.slice() ?? []} label={`Queries to ${a.name} in the last 90 s`} />}</td>
    </tr>
  );
}
