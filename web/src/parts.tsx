import type { ComponentChildren } from 'preact';

export function Tile(p: { label: string; value: string; note?: ComponentChildren }) {
  return <div class="tile"><div class="label">{p.label}</div><div class="value">{p.value}</div>{p.note && <div class="note">{p.note}</div>}</div>;
}

export function Problem(p: { error?: Error }) {
  return p.error ? <p class="notice bad" role="alert">{p.error.message}</p> : null;
}

export function Badge(p: { kind: 'good' | 'bad' | 'warn' | 'plain'; children: ComponentChildren }) {
  return <span class={`badge ${p.kind}`}>{p.children}</span>;
}

/** kept says in words and signs whether an objective is kept: never by colour alone. */
export function Kept(p: { burn: number | null; ended: boolean }) {
  if (!p.ended) return <Badge kind="plain">no queries</Badge>;
  if (p.burn == null || p.burn === 0) return <Badge kind="good">✓ kept</Badge>;
  return p.burn <= 1 ? <Badge kind="good">✓ kept</Badge> : <Badge kind="bad">✕ missed</Badge>;
}

export const series = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7'];
