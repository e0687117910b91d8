import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useAsk } from '../api';
import { colour, draw, useTheme, useWidth } from '../charts';
import { dollars, millis, percent, time } from '../format';
import { Badge, Problem, series } from '../parts';
import { Strip, useBatches, type Watch } from '../strip';
import type { Live } from '../main';
import type { Machines, WorkerNow } from '../types';

/** Up to so many workers of a kind have a card each; more are cells of a map. */
const mostCards = 24;
const cell = 15;
/** Batches that take so many seconds have a line of their own beside the strip that moves. */
const slowS = 1;

export function MachinesView({ live, picked }: { live: Live; picked?: string }) {
  const asked = useAsk<Machines>('machines', live.epoch);
  const states = useRef(new Map<number, WorkerNow>());
  const [turn, setTurn] = useState(0);
  const [now, setNow] = useState(0);
  const [by, setBy] = useState<'busy' | 'app'>('busy');
  useEffect(() => {
    states.current = new Map();
    for (const s of asked.data?.states ?? []) take(states.current, s);
    setNow(asked.data?.now_s ?? 0);
    setTurn((n) => n + 1);
  }, [asked.data]);
  const pace = useRef({ at: 0, now: 0 });
  useEffect(() => {
    live.onMachines.current = (d) => {
      for (const s of d.states) take(states.current, s);
      pace.current = { at: performance.now(), now: d.now_s };
      setNow(d.now_s);
      setTurn((n) => n + 1);
    };
    return () => { live.onMachines.current = undefined; };
  }, []);
  const watch = useBatches(live.link === 'live');
  const m = asked.data;
  const groups = useMemo(() => m?.kinds.map((k, at) => ({ kind: k, ids: m.workers.flatMap((w, id) => (w.kind === at ? [id] : [])) })).filter((g) => g.ids.length > 0) ?? [], [m]);
  const apps = useMemo(() => [...new Set(m?.stages.map((s) => s.app))], [m]);
  if (!m) return <><h1>Machines</h1><Problem error={asked.error} />{!asked.error && <p class="empty">Loading …</p>}</>;
  const chosen = picked ? m.workers.findIndex((w) => w.name === decodeURIComponent(picked)) : -1;
  const pick = (w: number) => { location.hash = `#/machines/${encodeURIComponent(m.workers[w].name)}`; };
  const maps = groups.some((g) => g.ids.length > mostCards);
  const body = groups.map((g) => {
    const used = g.ids.filter((w) => (states.current.get(w)?.i.length ?? 0) > 0);
    const busy = used.reduce((sum, w) => sum + (states.current.get(w)?.busy ?? 0), 0) / Math.max(1, used.length);
    return (
      <section class="card" key={g.kind.name}>
        <h2>{g.kind.name} <span class="muted small" style="font-weight:400">{used.length} of {g.ids.length} in use, {percent(busy, 0)} busy, {g.kind.cores} cores, {dollars(g.kind.price_per_hour)}/h each</span></h2>
        {g.ids.length <= mostCards
          ? <div class="workers">{g.ids.map((w) => <Worker key={w} m={m} w={w} state={states.current.get(w)} now={now} live={live} watch={watch} />)}</div>
          : <Cells m={m} ids={g.ids} states={states.current} turn={turn} by={by} apps={apps} chosen={chosen} pick={pick} name={g.kind.name} />}
      </section>
    );
  });
  return (
    <>
      <h1>Machines</h1>
      {m.workers.length === 0 && <p class="empty">There are no machines: list workers in sluice.yaml.</p>}
      {maps && (
        <div class="controls">
          <span class="group" role="group" aria-label="Colour by">
            <button aria-pressed={by === 'busy'} onClick={() => setBy('busy')}>How busy</button>
            <button aria-pressed={by === 'app'} onClick={() => setBy('app')}>Which app</button>
          </span>
          <span class="legend" style="margin:0">{by === 'busy'
            ? <><span><i style="background:rgba(var(--heat),.15)" />idle</span><span><i style="background:rgba(var(--heat),1)" />busy all the time</span></>
            : apps.slice(0, series.length).map((a, k) => <span key={a}><i style={{ background: `var(--${series[k]})` }} />{a}</span>)}
            <span><i style="border:1px solid var(--c7)" />holds nothing</span><span><i style="border:2px solid var(--c1)" />loads</span></span>
        </div>
      )}
      {maps ? (
        <div class="side"><div>{body}</div>
          <aside class="detail" aria-live="polite">{chosen >= 0
            ? <Worker m={m} w={chosen} state={states.current.get(chosen)} now={now} live={live} watch={watch} full />
            : <div class="card muted">Point at a machine to see its name; choose one, by click or with the arrow keys and Enter, to see what it does and why.</div>}</aside></div>
      ) : body}
    </>
  );
}

/** take puts the news of a worker beside what is known of it. */
function take(known: Map<number, WorkerNow>, s: WorkerNow) {
  const old = known.get(s.w);
  if (!s.runs) {
    for (const i of s.i) { i.stage ??= 0; i.v ??= []; i.slots ??= 1; for (const v of i.v) v.v ??= 0; }
    known.set(s.w, s);
  } else if (old) {
    known.set(s.w, { ...old, busy: s.busy, i: old.i.map((i) => ({ ...i, run: s.i.find((x) => x.id === i.id)?.run })) });
  }
}

function Worker({ m, w, state, now, live, watch, full }: { m: Machines; w: number; state?: WorkerNow; now: number; live: Live; watch: Watch; full?: boolean }) {
  const moves = live.link === 'live';
  const list = state?.i ?? [];
  return (
    <div class="worker">
      <div class="head"><span>{m.workers[w].name}</span><span class="num">{list.length > 0 ? percent(state!.busy, 0) : 'empty'}</span></div>
      <div class={state && state.busy > 0.97 ? 'bar over' : 'bar'} style="margin-top:5px" role="img" aria-label={`busy ${percent(state?.busy ?? 0, 0)}`}><i style={{ width: `${(state?.busy ?? 0) * 100}%` }} /></div>
      {moves && list.length > 0 && <Strip w={w} watch={watch} name={m.workers[w].name} variants={m.variants} />}
      {list.length === 0 && <div class="inst muted">holds nothing{full ? '' : ': the plan has no use for it now'}</div>}
      {list.map((i) => {
        const s = m.stages[i.stage];
        return (
          <div class="inst" key={i.id}>
            <div><a href={`#/apps/${encodeURIComponent(s.app)}`}>{s.app}</a>{s.stage !== s.app && ` · ${s.stage}`}{' '}
              {i.state !== 'ready' && <Badge kind={i.state === 'failed' ? 'bad' : 'warn'}>{i.state === 'kept' ? 'kept warm' : i.state}</Badge>}{full && <span class="muted"> instance {i.id}, {i.slots} at once</span>}</div>
            {i.v.map((v) => <span key={v.v} style={moves ? { borderLeft: `4px solid var(--${series[v.v % series.length]})` } : undefined} class={`chip ${v.loading ? 'loading' : ''} ${i.run?.some((b) => b.v === v.v) ? 'runs' : ''}`}>{m.variants[v.v]}{v.loading ? ' loads' : ''}</span>)}
            {i.run?.filter((b) => !moves || b.to_s - b.from_s >= slowS).map((b) => <Running key={b.id} b={b} now={now} name={m.variants[b.v]} />)}
          </div>
        );
      })}
      {(full || state?.events?.length) && state?.events && (
        <details class="small" open={full} style="margin-top:6px"><summary class="muted">Why</summary>
          {state.events.slice().reverse().map((e, k) => <div key={k}><span class="muted num">{time(e.at_s, live.startedMS)}</span> {e.what}{e.why && <span class="muted">: {e.why}</span>}</div>)}
          {state.events.length === 0 && <span class="muted">Nothing has changed here.</span>}
        </details>
      )}
    </div>
  );
}

/** Running shows a batch on its way to its end as it is believed. */
function Running({ b, now, name }: { b: { id: number; items: number; from_s: number; to_s: number; why: string }; now: number; name: string }) {
  const whole = Math.max(1e-6, b.to_s - b.from_s), done = Math.min(1, Math.max(0, (now - b.from_s) / whole));
  return (
    <div class="run" title={`batch ${b.id} on ${name}, because: ${b.why}`}>
      <div class={now > b.to_s ? 'bar over' : 'bar'}><i style={{ width: `${done * 100}%` }} /></div>
      <span>{b.items} item{b.items === 1 ? '' : 's'}, {millis(whole * 1000)} believed</span>
    </div>
  );
}

interface MapProps {
  m: Machines; ids: number[]; states: Map<number, WorkerNow>; turn: number; by: 'busy' | 'app'; apps: string[]; chosen: number; pick: (w: number) => void; name: string;
}

/** Cells draws every worker as a cell of one canvas: thousands stay readable, and scrolling moves a picture. */
function Cells(p: MapProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const theme = useTheme();
  const [at, setAt] = useState(-1);
  const columns = Math.max(1, Math.floor(width / cell)), rows = Math.ceil(p.ids.length / columns);
  useEffect(() => {
    if (!canvas.current || width === 0) return;
    const c = draw(canvas.current, columns * cell, rows * cell);
    if (!c) return;
    const heat = colour('heat'), loads = colour('c1'), edge = colour('line'), text = colour('text'), hues = series.map(colour);
    p.ids.forEach((w, k) => {
      const x = (k % columns) * cell, y = Math.floor(k / columns) * cell, s = p.states.get(w), size = cell - 2;
      if (!s || s.i.length === 0) {
        c.strokeStyle = edge;
        c.lineWidth = 1;
        c.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      } else if (p.by === 'busy') {
        c.fillStyle = `rgba(${heat}, ${0.12 + 0.88 * s.busy})`;
        c.fillRect(x, y, size, size);
      } else {
        s.i.forEach((i, n) => { // one stripe for each instance
          c.fillStyle = hues[p.apps.indexOf(p.m.stages[i.stage].app) % hues.length];
          c.fillRect(x + (n * size) / s.i.length, y, size / s.i.length, size);
        });
      }
      if (s?.i.some((i) => i.state === 'loading' || i.v.some((v) => v.loading))) {
        c.strokeStyle = loads;
        c.lineWidth = 2;
        c.strokeRect(x + 1, y + 1, size - 2, size - 2);
      }
      if (w === p.chosen || k === at) {
        c.strokeStyle = text;
        c.lineWidth = 2;
        c.strokeRect(x, y, size, size);
      }
    });
  }, [p.turn, p.by, p.chosen, at, width, theme, p.ids]);
  const find = (e: MouseEvent) => {
    const r = canvas.current!.getBoundingClientRect();
    const k = Math.floor((e.clientY - r.top) / cell) * columns + Math.floor((e.clientX - r.left) / cell);
    return k >= 0 && k < p.ids.length ? k : -1;
  };
  const key = (e: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
    if (step) {
      e.preventDefault();
      setAt(Math.max(0, Math.min(p.ids.length - 1, at < 0 ? 0 : at + step)));
    } else if (e.key === 'Enter' && at >= 0) p.pick(p.ids[at]);
  };
  return (
    <div ref={box}>
      <canvas ref={canvas} class="map" tabIndex={0} role="application"
        aria-label={`${p.ids.length} machines of kind ${p.name}. Arrow keys move, Enter chooses.${at >= 0 ? ` At ${p.m.workers[p.ids[at]].name}` : ''}`}
        onMouseMove={(e) => setAt(find(e))} onMouseLeave={() => setAt(-1)} onKeyDown={key}
        onClick={(e) => { const k = find(e); if (k >= 0) p.pick(p.ids[k]); }} />
      <div class="small muted" style="min-height:1.5em;margin-top:6px">{at >= 0 && `${p.m.workers[p.ids[at]].name}: ${describe(p, p.ids[at])}`}</div>
    </div>
  );
}

function describe(p: MapProps, w: number): string {
  const s = p.states.get(w);
  if (!s || s.i.length === 0) return 'holds nothing';
  return `${percent(s.busy, 0)} busy; ${s.i.map((i) => `${p.m.stages[i.stage].app}: ${i.v.map((v) => p.m.variants[v.v]).join(', ')}`).join('; ')}`;
}
