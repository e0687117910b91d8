import { render, type ComponentChildren } from 'preact';
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask, useStream, type Link } from './api';
import type { Info, Overview, WorkerNow } from './types';
import { OverviewView } from './views/overview';
import { MachinesView } from './views/machines';
import { AppView } from './views/app';
import { PlansView } from './views/plans';
import { QueryView } from './views/query';
import { WhatIfView } from './views/whatif';
import { FiguresView } from './views/figures';
import './style.css';

/** Live is what the stream has told, and what views show. */
export interface Live {
  info: Info; link: Link; epoch: number; startedMS: number; overview?: Overview; plans: number;
  /** The latest seconds by app: offered and violations, oldest first. */
  sparks: Map<string, { at: number[]; offered: number[]; wrong: number[] }>;
  /** onMachines is called with every change of machines while a view shows them. */
  onMachines: { current?: (d: { now_s: number; states: WorkerNow[] }) => void };
  turn: number;
}

const sparkSeconds = 90;

function useHash(): string {
  const [hash, set] = useState(location.hash);
  useEffect(() => {
    const see = () => set(location.hash);
    addEventListener('hashchange', see);
    return () => removeEventListener('hashchange', see);
  }, []);
  return hash.replace(/^#\/?/, '');
}

function themeNow(): 'light' | 'dark' {
  const kept = localStorage.getItem('theme');
  if (kept === 'light' || kept === 'dark') return kept;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

const linkWords: Record<Link, string> = { live: 'Live', saved: 'Saved run', lost: 'Connection lost, trying again', waiting: 'Connecting', locked: 'Asks for a key' };

function Page() {
  const path = useHash();
  const [asked, ...rest] = path.split('?')[0].split('/');
  const query = useMemo(() => new URLSearchParams(path.split('?')[1] ?? ''), [path]);
  const [overview, setOverview] = useState<Overview>();
  const [plans, setPlans] = useState(0);
  const [key, setKey] = useState(0);
  const [turn, setTurn] = useState(0);
  const [theme, setTheme] = useState(themeNow());
  const sparks = useRef<Live['sparks']>(new Map());
  const onMachines = useRef<((d: { now_s: number; states: WorkerNow[] }) => void) | undefined>(undefined);
  const see = useCallback((name: string, data: any) => {
    if (document.hidden && name !== 'plans') return;
    if (name === 'overview') setOverview(data as Overview);
    if (name === 'plans') setPlans(data.made as number);
    if (name === 'machines') onMachines.current?.(data);
    if (name === 'seconds') {
      for (const [app, s] of Object.entries(data.apps as Record<string, any>)) {
        let x = sparks.current.get(app);
        if (!x) sparks.current.set(app, (x = { at: [], offered: [], wrong: [] }));
        (s.at_s as number[]).forEach((at, k) => {
          if (x.at.length > 0 && at <= x.at[x.at.length - 1]) return;
          x.at.push(at); x.offered.push(s.offered[k]); x.wrong.push(s.violations[k]);
        });
        for (const list of [x.at, x.offered, x.wrong]) list.splice(0, Math.max(0, list.length - sparkSeconds));
      }
      setTurn((n) => n + 1);
    }
  }, []);
  const topics = asked === 'machines' ? 'overview,machines' : 'overview,seconds';
  const { link, info, epoch } = useStream(topics, key, see);
  const view = asked === '' && info && !info.run ? 'figures' : asked;
  useEffect(() => { // after a new beginning, the seconds of before are asked for
    sparks.current.clear();
    if (epoch > 0 && link === 'live') ask('seconds').then((x) => { sparks.current.clear(); see('seconds', x); }, () => undefined);
  }, [epoch]);
  useEffect(() => { document.documentElement.dataset.theme = theme; localStorage.setItem('theme', theme); }, [theme]);
  const titles: Record<string, string> = { '': 'Overview', machines: 'Machines', apps: rest[0] ?? 'Apps', plans: 'Plans', query: 'A query', 'what-if': 'What if', figures: 'Figures' };
  useEffect(() => { document.title = `${titles[view] ?? 'Nothing here'} · ${info?.name ?? 'sluice'}`; }, [path, info?.name]);
  const first = useRef(true);
  useEffect(() => { // the heading is read out where the view has changed
    if (first.current) first.current = false;
    else document.querySelector<HTMLElement>('main')?.focus({ preventScroll: false });
  }, [path.split('?')[0]]);
  if (link === 'locked') {
    return (
      <main><h1>sluice</h1>
        <form class="card" onSubmit={(e) => { e.preventDefault(); setKey(key + 1); }}>
          <p>This server shows itself to callers that may look. Give a key (<code>sluice key</code>), or the token of its admin_token file. It stays in this tab.</p>
          <label>Key{' '}<input type="password" autocomplete="off" onInput={(e) => sessionStorage.setItem('token', e.currentTarget.value)} /></label>{' '}
          <button class="main" type="submit">Show the server</button>
        </form></main>
    );
  }
  if (!info) {
    return <main><h1>sluice</h1><p class="empty" role="status">{link === 'lost'
      ? 'The server does not answer. It may still be starting; this page goes on by itself.' : 'Connecting …'}</p></main>;
  }
  const live: Live = { info, link, epoch, startedMS: info.started_ms, overview, plans, sparks: sparks.current, onMachines, turn };
  let body: ComponentChildren;
  switch (view) {
    case '': body = <OverviewView live={live} />; break;
    case 'machines': body = <MachinesView live={live} picked={rest[0]} />; break;
    case 'apps': body = <AppView live={live} name={decodeURIComponent(rest[0] ?? '')} />; break;
    case 'plans': body = <PlansView live={live} picked={rest[0]} against={query.get('against')} />; break;
    case 'query': body = <QueryView live={live} id={rest[0]} app={query.get('app') ?? ''} />; break;
    case 'what-if': body = <WhatIfView live={live} wanted={query.get('change')} />; break;
    case 'figures': body = <FiguresView live={live} name={rest.join('/')} />; break;
    default: body = <p class="empty">There is no view of this name. <a href="#/">Overview</a></p>;
  }
  const tabs: [string, string][] = info.run ? [['', 'Overview'], ['machines', 'Machines'], ['plans', 'Plans'], ['query', 'Queries']] : [];
  if (info.what_if) tabs.push(['what-if', 'What if']);
  if (info.figures) tabs.push(['figures', 'Figures']);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.querySelector<HTMLElement>('main')?.focus(); }}>Skip to the content</a>
      <header class="top">
        <a class="brand" href="#/"><img src="/icon.svg" width="22" height="22" alt="" />{info.name || 'sluice'}</a>
        <nav aria-label="Views">
          {tabs.map(([to, label]) => <a key={to} href={`#/${to}`} aria-current={view === to || (to === '' && view === 'apps') ? 'page' : undefined}>{label}</a>)}
        </nav>
        <div class="right">
          <span role="status"><span class={`dot ${link}`} />{linkWords[link]}</span>
          {info.system && <span>system {info.system}</span>}
          <a href="/docs/">Docs</a>
          <button class="small" onClick={() => setTheme(theme === 'dark' ? 'light' : 'dark')}>{theme === 'dark' ? 'Light' : 'Dark'}</button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>{body}</main>
    </>
  );
}

document.documentElement.dataset.theme = themeNow();
render(<Page />, document.getElementById('page')!);
