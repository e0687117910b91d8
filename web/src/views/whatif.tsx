import type { Live } from '../main';

export function WhatIfView(_p: { live: Live }) { return <h1>What if</h1>; }
