import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const readShipped = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../infra/observability/${name}`, import.meta.url)), 'utf8');

export interface Alert {
  readonly name: string;
  readonly expr: string;
  readonly runbook: string;
}

/** Returns the shipped alert rules. The parsing is simple, because the file has one field per line. */
export function alertsIn(): Alert[] {
  return readShipped('alerts.yml')
    .split(/^ *- alert: /m)
    .slice(1)
    .map((rule) => ({
      name: rule.slice(0, rule.indexOf('\n')),
      expr: /^ *expr: (.*)$/m.exec(rule)?.[1] ?? '',
      runbook: /^ *runbook: (.*)$/m.exec(rule)?.[1] ?? '',
    }));
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

export function shippedQueries(): string[] {
  const { panels } = JSON.parse(readShipped('petrel.dashboard.json')) as { panels: readonly Panel[] };
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}
