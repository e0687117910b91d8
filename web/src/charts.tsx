import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { millis } from './format';

/** colour reads a colour of the theme. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** useTheme returns a number that changes with the theme, for charts to be drawn anew. */
export function useTheme(): string {
  const [theme, set] = useState(document.documentElement.dataset.theme ?? 'light');
  useEffect(() => {
    const see = new MutationObserver(() => set(document.documentElement.dataset.theme ?? 'light'));
    see.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => see.disconnect();
  }, []);
  return theme;
}

/** useWidth returns the width of an element as it is now. */
export function useWidth(ref: { current: HTMLElement | null }): number {
  const [width, set] = useState(0);
  useLayoutEffect(() => {
    const e = ref.current;
    if (!e) return;
    set(e.clientWidth);
    const see = new ResizeObserver(() => set(e.clientWidth));
    see.observe(e);
    return () => see.disconnect();
  }, []);
  return width;
}

export interface Line { label: string; colour: string; values: (number | null)[]; fill?: boolean; dash?: boolean }

interface TimeProps {
  label: string; at: number[]; lines: Line[]; startedMS: number; height?: number; stacked?: boolean;
  format?: (x: number) => string; max?: number;
}

/** TimeChart draws lines, or areas on top of each other, over the time of the run. */
export function TimeChart(p: TimeProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const width = useWidth(box);
  const theme = useTheme();
  const height = p.height ?? 190;
  const shape = p.lines.map((l) => `${l.label}|${l.colour}|${l.fill}`).join(';') + theme + p.startedMS + p.stacked;
  const xs = p.startedMS > 0 ? p.at.map((s) => s + p.startedMS / 1000) : p.at;
  // Areas are drawn from the top one down, each over the ones below it.
  const columns: (number | null)[][] = [];
  if (p.stacked) {
    const sum = new Array<number>(p.at.length).fill(0);
    for (const l of p.lines) {
      l.values.forEach((v, k) => { sum[k] += v ?? 0; });
      columns.unshift([...sum]);
    }
  } else {
    for (const l of p.lines) columns.push(l.values);
  }
  const data = [xs, ...columns] as uPlot.AlignedData;
  useEffect(() => {
    if (!box.current || width === 0) return;
    const order = p.stacked ? [...p.lines].reverse() : p.lines;
    const ink = colour('muted');
    const grid = { stroke: colour('grid'), width: 1 };
    const format = p.format ?? ((x: number) => x.toLocaleString('en'));
    const x = new uPlot({
      width, height, padding: [10, 18, 0, 0], legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: p.startedMS > 0 }, y: { range: (_u, _min, max) => [0, p.max ?? (max > 0 ? max * 1.08 : 1)] } },
      series: [{}, ...order.map((l) => ({
        label: l.label, stroke: colour(l.colour), width: p.stacked ? 1 : 1.7, points: { show: false }, spanGaps: false,
        fill: p.stacked ? colour(l.colour) : l.fill ? `${colour(l.colour)}33` : undefined, dash: l.dash ? [5, 4] : undefined,
      }))],
      axes: [
        { stroke: ink, grid, ticks: grid, size: 30, space: 80, incrs: secondsOf, ...(p.startedMS > 0 ? { values: (_u: uPlot, v: number[], _i: number, _s: number, incr: number) =>
          v.map((t) => new Date(t * 1000).toLocaleTimeString('en-GB', incr >= 60 ? { hour: '2-digit', minute: '2-digit' } : {})) }
          : { values: (_u: uPlot, v: number[]) => v.map((t) => `${t} s`) }) },
        { stroke: ink, grid, ticks: grid, size: 62, values: (_u, v) => v.map(format) },
      ],
    }, data, box.current);
    plot.current = x;
    return () => { x.destroy(); plot.current = undefined; };
  }, [shape, width === 0]);
  useEffect(() => { plot.current?.setData(data); });
  useEffect(() => { if (width > 0) plot.current?.setSize({ width, height }); }, [width, height]);
  return (
    <figure style="margin:0" aria-label={p.label}>
      {p.lines.length > 1 && <Legend lines={p.lines} />}
      <div class="chart" ref={box} role="img" aria-label={describe(p)} style={{ minHeight: `${height}px` }} />
    </figure>
  );
}

/** secondsOf are the steps of a time axis: labels say no less than seconds. */
const secondsOf = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/** describe says in words what a chart shows last, for those who do not see it. */
function describe(p: TimeProps): string {
  const format = p.format ?? ((x: number) => x.toLocaleString('en'));
  const last = p.lines.map((l) => {
    const v = l.values.findLast((x) => x != null);
    return `${l.label} ${v == null ? 'none' : format(v)}`;
  });
  return `${p.label}, over time. Last: ${last.join(', ')}`;
}

export function Legend(p: { lines: { label: string; colour: string }[] }) {
  return <div class="legend">{p.lines.map((l) => <span key={l.label}><i style={{ background: `var(--${l.colour})` }} />{l.label}</span>)}</div>;
}

/** draw prepares a canvas for the screen's pixels. */
function draw(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const c = canvas.getContext('2d');
  c?.setTransform(scale, 0, 0, scale, 0, 0);
  c?.clearRect(0, 0, width, height);
  return c;
}

const gutter = 62;

/** HeatMap shows how many queries had which latency when, with the objective as a line. */
export function HeatMap(p: { at: number[]; latency: number[][]; buckets: number[]; objectiveMS: number; startedMS: number; label: string }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const theme = useTheme();
  const height = 230;
  useEffect(() => {
    if (!canvas.current || width === 0) return;
    const c = draw(canvas.current, width, height);
    if (!c) return;
    let low = p.buckets.length, high = 0, most = 1;
    for (const column of p.latency) {
      for (let k = 0; k < column.length; k += 2) {
        low = Math.min(low, column[k]);
        high = Math.max(high, column[k]);
        most = Math.max(most, column[k + 1]);
      }
    }
    const line = p.buckets.findLastIndex((b) => b <= p.objectiveMS);
    low = Math.max(0, Math.min(low, line) - 2);
    high = Math.min(p.buckets.length - 1, Math.max(high, line) + 2);
    const rows = high - low + 1, bottom = height - 22;
    const y = (bucket: number) => bottom - ((bucket - low) / rows) * bottom;
    const cell = (width - gutter) / Math.max(1, p.latency.length), tall = bottom / rows;
    const ink = colour('heat');
    p.latency.forEach((column, x) => {
      for (let k = 0; k < column.length; k += 2) {
        // Few queries must be seen, too: the shade follows the root of the count.
        c.fillStyle = `rgba(${ink}, ${0.12 + 0.88 * Math.sqrt(column[k + 1] / most)})`;
        c.fillRect(gutter + x * cell, y(column[k] + 1), Math.max(1, cell - (cell > 4 ? 0.5 : 0)), tall - 0.5);
      }
    });
    c.fillStyle = colour('muted');
    c.font = '12px system-ui';
    c.textAlign = 'right';
    for (let b = low; b <= high; b += Math.max(1, Math.round(rows / 6))) c.fillText(millis(p.buckets[b]), gutter - 6, y(b) + 4);
    const at = line + Math.log2(p.objectiveMS / p.buckets[line]) * 4;
    c.strokeStyle = colour('c5');
    c.setLineDash([6, 4]);
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(gutter, y(at));
    c.lineTo(width, y(at));
    c.stroke();
    c.setLineDash([]);
    c.fillStyle = colour('bad');
    c.fillText(`objective ${millis(p.objectiveMS)}`, width - 4, y(at) < 18 ? y(at) + 14 : y(at) - 5);
    c.fillStyle = colour('muted');
    c.textAlign = 'left';
    if (p.at.length > 0) {
      const clock = (s: number) => (p.startedMS > 0 ? new Date(p.startedMS + s * 1000).toLocaleTimeString('en-GB') : `${s} s`);
      c.fillText(clock(p.at[0]), gutter, height - 6);
      c.textAlign = 'right';
      c.fillText(clock(p.at[p.at.length - 1]), width - 2, height - 6);
    }
  }, [p.at, p.latency, width, theme, p.objectiveMS]);
  return <div ref={box} class="chart"><canvas ref={canvas} role="img" aria-label={p.label} style={{ height: `${height}px` }} /></div>;
}

/** Distribution shows how many queries had which latency, those beyond the objective in another colour. */
export function Distribution(p: { pairs: number[]; buckets: number[]; objectiveMS: number }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const theme = useTheme();
  const height = 230;
  let over = 0, all = 0;
  for (let k = 0; k < p.pairs.length; k += 2) {
    all += p.pairs[k + 1];
    if (p.buckets[p.pairs[k]] > p.objectiveMS) over += p.pairs[k + 1];
  }
  useEffect(() => {
    if (!canvas.current || width === 0) return;
    const c = draw(canvas.current, width, height);
    if (!c) return;
    const line = p.buckets.findLastIndex((b) => b <= p.objectiveMS);
    const ids = p.pairs.filter((_x, k) => k % 2 === 0);
    const low = Math.max(0, Math.min(line, ...ids) - 1), high = Math.min(p.buckets.length - 1, Math.max(line, ...ids) + 2);
    const most = Math.max(1, ...p.pairs.filter((_x, k) => k % 2 === 1));
    const edge = 30, bottom = height - 22, wide = (width - 2 * edge) / (high - low + 1);
    for (let k = 0; k < p.pairs.length; k += 2) {
      const tall = (p.pairs[k + 1] / most) * (bottom - 12);
      c.fillStyle = colour(p.buckets[p.pairs[k]] > p.objectiveMS ? 'c5' : 'c0');
      c.fillRect(edge + (p.pairs[k] - low) * wide, bottom - tall, Math.max(1, wide - 1.5), tall);
    }
    c.font = '12px system-ui';
    c.fillStyle = colour('muted');
    c.textAlign = 'center';
    const every = Math.max(1, Math.ceil(64 / wide));
    for (let b = low; b <= high; b += every) c.fillText(millis(p.buckets[b]), edge + (b - low) * wide, height - 6);
    const x = edge + (line - low + Math.log2(p.objectiveMS / p.buckets[line]) * 4) * wide;
    c.strokeStyle = colour('c5');
    c.setLineDash([6, 4]);
    c.beginPath();
    c.moveTo(x, 4);
    c.lineTo(x, bottom);
    c.stroke();
    c.setLineDash([]);
    c.fillStyle = colour('bad');
    c.textAlign = x > width / 2 ? 'right' : 'left';
    c.fillText(`objective ${millis(p.objectiveMS)}`, x + (x > width / 2 ? -6 : 6), 14);
  }, [p.pairs, width, theme, p.objectiveMS]);
  return (
    <div ref={box} class="chart">
      <canvas ref={canvas} role="img" style={{ height: `${height}px` }}
        aria-label={`Distribution of latency in the last minute: ${all} answers, about ${over} beyond the objective of ${millis(p.objectiveMS)}`} />
    </div>
  );
}

/** Spark is a small line of a list's latest values, with a second one for what went wrong. */
export function Spark(p: { values: number[]; wrong: number[]; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const c = canvas.current && draw(canvas.current, 120, 26);
    if (!c) return;
    const most = Math.max(1, ...p.values);
    const x = (k: number) => (k / Math.max(1, p.values.length - 1)) * 118 + 1;
    c.strokeStyle = colour('c0');
    c.lineWidth = 1.4;
    c.beginPath();
    p.values.forEach((v, k) => c.lineTo(x(k), 24 - (v / most) * 22));
    c.stroke();
    c.fillStyle = colour('c5');
    p.wrong.forEach((v, k) => { if (v > 0) { const tall = Math.max(2, (v / most) * 22); c.fillRect(x(k) - 0.7, 25 - tall, 2, tall); } });
  }, [p.values, p.wrong, theme]);
  return <canvas ref={canvas} role="img" aria-label={p.label} style="width:120px;height:26px" />;
}

export { draw };
