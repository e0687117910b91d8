import { Badge } from '../parts';
import type { Advice, Change } from '../types';

/** tryAt is the address of the view What if with a change on its sliders. */
export function tryAt(change: Change): string { return `#/what-if?change=${encodeURIComponent(JSON.stringify(change))}`; }

/** AdviceOf shows what sluice plan says of a demand. onTry, if given, takes a mend up; else it is a link to What if. */
export function AdviceOf({ a, onTry }: { a: Advice; onTry?: (c: Change) => void }) {
  return (
    <div style="margin-bottom:14px">
      <p>{a.carried ? <Badge kind="good">✓ carried</Badge> : <Badge kind="bad">✕ falls short</Badge>}{' '}
        {a.summary?.join(' ') || 'All of this demand is carried.'}</p>
      {a.lists?.map((l) => (
        <div key={l.title}><p style="margin:10px 0 4px"><b>{l.title}</b></p>
          {l.items && <ul style="margin:0;padding-left:20px">{l.items.map((x) => (
            <li key={x.text} style="margin:3px 0">{x.text}{x.change && <>{' '}{onTry
              ? <button class="small" type="button" onClick={() => onTry(x.change!)}>Set the sliders to it</button>
              : <a href={tryAt(x.change)}>What if?</a>}</>}</li>))}</ul>}
        </div>))}
      {a.facts && a.facts.length > 0 && (
        <details class="small" style="margin-top:8px" open={a.carried}><summary>As sluice plan sees it (system {a.system}, planner {a.planner})</summary>
          <dl class="facts">{a.facts.map((f) => <><dt>{f.name}</dt><dd>{f.text}</dd></>)}</dl></details>)}
    </div>
  );
}
