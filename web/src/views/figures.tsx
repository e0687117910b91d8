import type { Live } from '../main';

export function FiguresView(_p: { live: Live; name: string }) { return <h1>Figures</h1>; }
