import { useEffect, useRef } from 'preact/hooks';
import { ask } from './api';
import { colour, draw, useTheme, useWidth } from './charts';
import { millis } from './format';
import { series } from './parts';
import type { Recent, RecentBatch } from './types';

const spanS = 2.5; // of the past that a strip shows
const aheadS = 0.35; // of the time to come, in which batches are believed to end
const pollMS = 250;
const delayS = 0.4; // what is drawn is so old, so that it has been heard of
const mostWatched = 64; // as the server has it
const mostKept = 240; // batches of a machine

/** Watch hands what runs to the strips that are on the screen. */
export interface Watch { add: (w: number, canvas: HTMLCanvasElement, paint: Paint) => () => void }
type Paint = (now: number, list: RecentBatch[]) => void;
interface Shown { w: number; paint: Paint; visible: boolean; empty: boolean }

/**
 * useBatches asks four times a second what ran on the machines whose strips are visible, and has those drawn in every
 * frame. Where people want no motion, both happen once a second.
 */
export function useBatches(on: boolean): Watch {
  const shown = useRef(new Map<HTMLCanvasElement, Shown>());
  const see = useRef<IntersectionObserver | undefined>(undefined);
  const watch = useRef<Watch | undefined>(undefined);
  watch.current ??= {
    add(w, canvas, paint) {
      see.current ??= new IntersectionObserver((list) => {
        for (const e of list) {
          const s = shown.current.get(e.target as HTMLCanvasElement);
          if (s) s.visible = e.isIntersecting;
        }
      });
      shown.current.set(canvas, { w, paint, visible: false, empty: false });
      see.current.observe(canvas);
      return () => { shown.current.delete(canvas); see.current?.unobserve(canvas); };
    },
  };
  useEffect(() => () => see.current?.disconnect(), []);
  useEffect(() => {
    if (!on) return;
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const kept = new Map<number, Map<number, RecentBatch>>();
    const stop = new AbortController();
    let offset: number | undefined, since = 0, busy = false, frame = 0;
    const paint = () => {
      if (offset === undefined) return;
      const now = performance.now() / 1000 + offset - delayS;
      for (const s of shown.current.values()) {
        if (!s.visible) continue;
        const list = [...kept.get(s.w)?.values() ?? []];
        if (list.length === 0 && s.empty) continue; // nothing moves there
        s.empty = list.length === 0;
        s.paint(now, list);
      }
    };
    const poll = async () => {
      const workers = [...new Set([...shown.current.values()].flatMap((s) => (s.visible ? [s.w] : [])))].slice(0, mostWatched);
      if (busy || document.hidden || workers.length === 0) return;
      busy = true;
      try {
        const r = await ask<Recent>(`batches?workers=${workers.join()}&since=${since.toFixed(3)}`, undefined, stop.signal);
        const heard = r.now_s - performance.now() / 1000;
        offset = offset === undefined || Math.abs(heard - offset) > 0.5 ? heard : offset + (heard - offset) * 0.1;
        if (r.now_s < since) kept.clear(); // the server has started again
        since = r.now_s;
        for (const b of r.batches) {
          let list = kept.get(b.w);
          if (!list) kept.set(b.w, (list = new Map()));
          list.set(b.id, b);
        }
        for (const [w, list] of kept) {
          const old = [...list.values()].filter((b) => (b.end_s ?? r.now_s) < r.now_s - spanS - 2 * delayS || b.end_s == null && b.to_s < r.now_s - 60);
          for (const b of old) list.delete(b.id);
          const over = [...list.values()].sort((x, y) => x.from_s - y.from_s).slice(0, Math.max(0, list.size - mostKept));
          for (const b of over) list.delete(b.id);
          if (list.size === 0) kept.delete(w);
        }
        if (still) paint();
      } catch { /* the page says elsewhere that the server does not answer */ } finally {
        busy = false;
      }
    };
    const step = () => { paint(); frame = requestAnimationFrame(step); };
    if (!still) frame = requestAnimationFrame(step);
    const timer = setInterval(() => void poll(), still ? 1000 : pollMS);
    void poll();
    return () => { stop.abort(); clearInterval(timer); cancelAnimationFrame(frame); };
  }, [on]);
  return watch.current;
}

/** Strip draws the batches of a machine on their way: the latest seconds to the left, what runs at the line. */
export function Strip({ w, watch, name, variants }: { w: number; watch: Watch; name: string; variants: string[] }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const theme = useTheme();
  const last = useRef<{ now: number; list: RecentBatch[] }>({ now: 0, list: [] });
  const height = 34;
  const x = (s: number, now: number) => ((s - now + spanS) / (spanS + aheadS)) * width;
  useEffect(() => {
    const element = canvas.current;
    if (!element || width === 0) return;
    const hues = series.map(colour), line = colour('muted'), ground = colour('ground'), late = colour('c5');
    return watch.add(w, element, (now, list) => {
      last.current = { now, list };
      const c = draw(element, width, height);
      if (!c) return;
      c.fillStyle = ground;
      c.fillRect(0, 0, width, height);
      const most = Math.max(1, ...list.map((b) => b.items));
      for (const b of list) {
        if (b.from_s > now) continue;
        const tall = 8 + (height - 10) * (b.items / most), from = Math.max(0, x(b.from_s, now));
        const runs = b.end_s == null || b.end_s > now;
        const to = x(runs ? now : b.end_s!, now);
        if (to < 0) continue;
        c.fillStyle = hues[b.v % hues.length];
        c.globalAlpha = runs ? 1 : 0.75;
        c.fillRect(from, height - tall, Math.max(1, to - from - (to - from > 4 ? 1 : 0)), tall);
        c.globalAlpha = 1;
        if (runs) { // the outline goes to where it is believed to end
          c.strokeStyle = b.to_s < now ? late : hues[b.v % hues.length];
          c.strokeRect(from + 0.5, height - tall + 0.5, Math.max(1, x(Math.max(b.to_s, now), now) - from - 1), tall - 1);
        }
      }
      c.fillStyle = line;
      c.fillRect(x(now, now), 0, 1, height);
    });
  }, [w, watch, width, theme]);
  const tell = (e: MouseEvent) => {
    const { now, list } = last.current, at = e.offsetX;
    const b = list.findLast((b) => b.from_s <= now && x(b.from_s, now) - 1 <= at && at <= x(b.end_s ?? Math.max(b.to_s, now), now) + 1);
    const believed = b ? millis((b.to_s - b.from_s) * 1000) : '';
    canvas.current!.title = !b ? '' : `batch ${b.id}: ${b.items} item${b.items === 1 ? '' : 's'} on ${variants[b.v]}, ${b.end_s == null ? `${believed} believed` : `took ${millis((b.end_s - b.from_s) * 1000)}, ${believed} believed`}`;
  };
  return <div ref={box}><canvas ref={canvas} class="strip" role="img" aria-label={`Batches on ${name} in the latest ${spanS} s`} onMouseMove={tell} /></div>;
}
