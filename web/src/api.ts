import { useEffect, useRef, useState } from 'preact/hooks';
import type { Info } from './types';

const prefix = '/api/v1/';

/** shown are the headers of a request, with the key that the person has given. */
function shown(): Record<string, string> {
  const key = sessionStorage.getItem('token');
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** ask gets JSON. An error has the server's own words. */
export async function ask<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers = shown();
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let reply: Response;
  try {
    reply = await fetch(prefix + path, {
      method: body === undefined ? 'GET' : 'POST', headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Refused(0, 'The server does not answer. It may be starting again; this page goes on by itself when it is back.');
  }
  if (!reply.ok) {
    const text = await reply.json().then((x) => x.error as string, () => reply.statusText);
    throw new Refused(reply.status, text);
  }
  return reply.json() as Promise<T>;
}

/** Refused is an answer other than the one asked for; status 0 means that there was none. */
export class Refused extends Error {
  status: number;
  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

export interface Asked<T> { data?: T; error?: Error; again: () => void }

/** useAsk asks when the path changes, when epoch does, and every so many ms. It keeps the last answer meanwhile. */
export function useAsk<T>(path: string | null, epoch: number | string, everyMS = 0): Asked<T> {
  const [state, set] = useState<{ path?: string | null; data?: T; error?: Error }>({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    const get = () => ask<T>(path, undefined, stop.signal).then(
      (data) => set({ path, data }),
      (error) => stop.signal.aborted || set((s) => ({ path, data: s.path === path ? s.data : undefined, error })),
    );
    void get();
    const timer = everyMS > 0 ? setInterval(() => document.hidden || void get(), everyMS) : 0;
    return () => { stop.abort(); clearInterval(timer); };
  }, [path, epoch, everyMS, turn]);
  return { ...(state.path === path ? state : {}), again: () => setTurn(turn + 1) } as Asked<T>;
}

export type Link = 'live' | 'saved' | 'lost' | 'waiting' | 'locked';

const retryMS = 1000;
/** A page that nobody has looked at for so long gives its connection back: a browser has six for each server. */
const hiddenMS = 15_000;

/**
 * useStream reads the server's events and calls see for each. A lost connection is taken up again. epoch rises with each
 * new beginning: then everything has to be asked anew. It is no EventSource, which cannot show a key. key changes where
 * the person gives another one.
 */
export function useStream(topics: string, key: number, see: (name: string, data: any) => void): { link: Link; info?: Info; epoch: number } {
  const [link, setLink] = useState<Link>('waiting');
  const [info, setInfo] = useState<Info>();
  const [epoch, setEpoch] = useState(0);
  const seen = useRef(see);
  seen.current = see;
  useEffect(() => {
    let stop = new AbortController();
    let timer = 0;
    const take = (name: string, data: string) => {
      const x = JSON.parse(data);
      if (name === 'info') {
        setInfo(x as Info);
        setLink((x as Info).source);
      }
      if (name === 'info' || name === 'again') setEpoch((n) => n + 1);
      else seen.current(name, x);
    };
    const read = async () => {
      const reply = await fetch(`${prefix}stream?topics=${topics}`, { headers: shown(), signal: stop.signal });
      if (reply.status === 401 || reply.status === 403) {
        setLink('locked');
        return false;
      }
      if (!reply.ok || !reply.body) return true;
      const text = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ''; ;) {
        const { done, value } = await text.read();
        if (done) return true;
        const events = (rest + value).split('\n\n');
        rest = events.pop()!;
        for (const e of events) {
          const m = e.match(/^event: (.*)\ndata: (.*)$/);
          if (m) take(m[1], m[2]);
        }
      }
    };
    const open = () => {
      stop = new AbortController();
      read().catch(() => true).then((again) => {
        if (!again || ended || resting) return;
        setLink('lost');
        timer = window.setTimeout(open, retryMS);
      });
    };
    let ended = false, resting = false, rest = 0;
    const look = () => {
      clearTimeout(rest);
      if (document.hidden) {
        rest = window.setTimeout(() => { resting = true; clearTimeout(timer); stop.abort(); }, hiddenMS);
      } else if (resting) {
        resting = false;
        open();
      }
    };
    document.addEventListener('visibilitychange', look);
    open();
    return () => {
      ended = true;
      document.removeEventListener('visibilitychange', look);
      clearTimeout(rest);
      clearTimeout(timer);
      stop.abort();
    };
  }, [topics, key]);
  return { link, info, epoch };
}
