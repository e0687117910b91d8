/** None is shown where a number does not exist: nothing was served, say. */
export const none = '–';

export function count(x: number | null | undefined): string {
  return x == null ? none : Math.round(x).toLocaleString('en');
}

/** rate writes a rate per second with three digits. */
export function rate(x: number | null | undefined): string {
  if (x == null) return none;
  if (x >= 100) return Math.round(x).toLocaleString('en');
  return x.toFixed(x >= 10 || x === 0 ? (x === 0 ? 0 : 1) : 2);
}

export function percent(x: number | null | undefined, digits = 2): string {
  if (x == null) return none;
  const p = x * 100;
  return `${p.toFixed(p === 0 || p === 100 ? 0 : p >= 10 ? Math.min(1, digits) : digits)} %`;
}

export function millis(x: number | null | undefined): string {
  if (x == null) return none;
  if (x > 0 && x < 0.1) return `${Math.round(x * 1000)} µs`;
  if (x >= 10_000) return `${(x / 1000).toFixed(1)} s`;
  return `${x >= 100 ? Math.round(x) : x >= 10 ? x.toFixed(1) : x === 0 ? 0 : x.toFixed(2)} ms`;
}

export function dollars(x: number | null | undefined): string {
  if (x == null) return none;
  return `$${x >= 100 ? Math.round(x).toLocaleString('en') : x >= 1 || x === 0 ? x.toFixed(2) : x.toPrecision(2)}`;
}

export function factor(x: number | null | undefined): string {
  return x == null ? none : `${x >= 10 ? Math.round(x) : x.toFixed(x === 0 ? 0 : 2)}×`;
}

/** time writes an instant of a run: the clock where the start is known, else seconds since the start. */
export function time(s: number, startedMS: number): string {
  if (startedMS > 0) return new Date(startedMS + s * 1000).toLocaleTimeString('en-GB');
  return s >= 120 ? `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s` : `${s.toFixed(s < 10 ? 2 : 1)} s`;
}

export function span(s: number): string {
  if (s < 60) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  return `${(s / 3600).toFixed(1)} h`;
}
