// The JSON of the API, schema 1; docs/dashboard.md describes it.

export interface Info {
  schema: number; name: string; version: string; system: string; source: 'live' | 'saved'; started_ms: number;
  run: boolean; token: boolean; what_if: boolean; figures: boolean; history_ms: number;
}
export interface Window {
  span_s: number; offered: number; served: number; late: number; dropped: number; refused: number; failed: number;
  cancelled: number; offered_rate: number; throughput: number; violation_ratio: number | null;
  effective_accuracy: number | null; second_answers?: number; latency_p50_ms: number | null; latency_p99_ms: number | null;
  mean_batch: number | null; wait_instance_ms: number | null; wait_batch_ms: number | null; run_ms: number | null;
}
export interface Forecast {
  demand: number | null; capacity: number | null; shed: number | null; violation_ratio: number | null;
  violation_band: [number, number] | null; effective_accuracy: number | null;
}
export interface AppNow {
  name: string; slo_ms: number; slo_percentile: number; slo_proposed?: boolean; accuracy_floor?: number; accuracy_target?: number;
  best_accuracy: number; stages: number; closed?: boolean; waiting: number; now: Window; hour: Window;
  burn: number | null; burn_hour: number | null; forecast?: Forecast;
}
export interface PlanLine {
  number: number; at_s: number; took_s: number; why: string; planner?: string; in_force: boolean; failure?: string;
  ignored?: boolean; instances: number; loads: number; cost_per_hour: number; throughput: number;
  effective_accuracy: number; violation_ratio: number | null; shed: number; choice?: string;
}
export interface Overview {
  schema: number; now_s: number; now: Window; hour: Window; cost_per_hour: number; cost_per_million: number | null;
  utilisation: number | null; workers: number; workers_used: number; instances: number; batches: number;
  plan: PlanLine | null; apps: AppNow[];
}
export interface Batch { id: number; v: number; items: number; from_s: number; to_s: number; why: string }
export interface Instance {
  id: number; stage: number; state: string; slots: number; v: { v: number; loading?: boolean }[]; run?: Batch[];
}
export interface WorkerNow {
  w: number; busy: number; runs?: boolean; i: Instance[]; events?: { at_s: number; what: string; why: string }[];
}
export interface Machines {
  now_s: number; kinds: { name: string; price_per_hour: number; cores: number; memory_bytes?: number }[];
  stages: { app: string; stage: string }[]; variants: string[]; workers: { name: string; kind: number }[];
  states: WorkerNow[];
}
export interface Series {
  step_s: number; at_s: number[]; offered: number[]; served: number[]; violations: number[]; cancelled: number[];
  effective_accuracy: (number | null)[]; latency_p50_ms: (number | null)[]; latency_p99_ms: (number | null)[];
  wait_instance_ms: (number | null)[]; wait_batch_ms: (number | null)[]; run_ms: (number | null)[];
  mean_batch: (number | null)[]; latency: number[][]; variants: Record<string, number[]>; dollars: number[];
  utilisation: (number | null)[];
}
export interface SeriesReply { app: string; buckets: number[]; series: Series }
export interface Stage {
  name: string; rate: number; budget_ms: number | null; ready: number; next: { to: string; fan_out: number }[];
  variants: { name: string; accuracy: number; rate: number; held: number }[]; stateful?: boolean;
}
export interface AppView extends AppNow { graph: Stage[]; buckets: number[]; latency: number[]; minute: Window }
export interface PlanRow {
  app: string; stage: string; kind: string; variants: string[]; batch_limit: number; instances: number;
  workers: number; share: number;
}
export interface PlanView extends PlanLine {
  apps: {
    name: string; seen: number | null; demand: number | null; capacity: number | null; shed: number | null;
    violation_ratio: number | null; effective_accuracy: number | null;
  }[];
  rows: PlanRow[]; short?: { kind: string; more: number }[]; bound: number | null; gap: number | null;
  bounds_cost?: boolean; budgets?: { app: string; stage: string; ms: number }[];
  trials?: {
    candidate: string; machines: number; cost_per_hour: number; loads: number; violation_ratio: number;
    effective_accuracy: number; utility: number; adopted: boolean;
  }[];
  changes: (PlanRow & { before: number })[];
}
export interface Missed {
  query: number; app: string; at_s: number; latency_ms: number; outcome: string; late?: boolean; reason: string;
}
export interface QueryRun {
  stage?: string; batch: number; instance: number; variant: string; why: string; items: number; with?: number[];
  waited_for_stream_ms?: number; waited_for_instance_ms: number; waited_ms: number; started_s: number;
  expected_ms: number; took_ms?: number; failed?: boolean; worker?: string;
  compared?: Comparison; weighed?: Weighed;
}
export interface Weighed { late?: boolean; more?: number; choices: WeighedChoice[] }
export interface WeighedChoice {
  for: string; variant: string; kind: string; queries: number; items: number; run_ms: number;
  gain: number; price_per_s: number; blocks?: number; score: number; why: string;
}
export interface Comparison {
  batch: number; at_s: number; waiting: number; spare_ms: number | null; candidates: Candidate[];
}
export interface Candidate {
  variant: string; accuracy: number; kind: string; worker?: string; queries: number; items: number; wait_ms: number;
  run_ms: number | null; spare_ms: number | null; in_time: number; behind: number; worth: number; worth_per_s: number | null;
  cost_per_million: number | null; chosen: boolean; why_not?: string;
}
export interface RecentBatch { w: number; id: number; v: number; items: number; from_s: number; to_s: number; end_s: number | null }
export interface Recent { now_s: number; batches: RecentBatch[] }
export interface AppChange { load?: number; slo_ms?: number; accuracy_floor?: number; accuracy_target?: number }
export interface Change { apps?: Record<string, AppChange>; machines?: Record<string, number>; system?: string; budget?: number }
export interface Advice {
  system: string; planner: string; demand: number; served: number; carried: boolean;
  facts: { name: string; text: string }[] | null; summary?: string[];
  lists?: { title: string; items?: { text: string; change?: Change }[] }[];
}
export interface QueryView {
  query: number; app: string; arrived_s: number; deadline_ms: number; items: number; priority?: number;
  min_accuracy?: number; pinned?: string; outcome?: string; reason?: string; latency_ms?: number; late?: boolean;
  accuracy?: number; runs: QueryRun[]; text: string;
}
