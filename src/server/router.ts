/** Finds the endpoint for a verb and a path. */
import type { Endpoint } from './endpoint.js';

type Routed = Pick<Endpoint, 'verb' | 'path'>;

export interface Match<E extends Routed = Endpoint> {
  readonly endpoint: E;
  readonly segments: Readonly<Record<string, string>>;
}

/** Finds an endpoint. `other_verb` means that the path exists, but not with this verb. */
export type FindEndpoint<E extends Routed = Endpoint> = (
  verb: string,
  path: string,
) => Match<E> | 'other_verb' | null;

function decoded(segment: string): string | null {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}

interface Known<E> {
  readonly endpoint: E;
  readonly pattern: readonly string[];
  readonly parameters: ReadonlyArray<readonly [at: number, name: string]>;
}

function knownOf<E extends Routed>(endpoint: E): Known<E> {
  const pattern = endpoint.path.split('/');
  const parameters = pattern.flatMap((part, i) =>
    part.startsWith('{') ? [[i, part.slice(1, -1)] as const] : [],
  );
  for (const [at] of parameters) pattern[at] = '';
  return { endpoint, pattern, parameters };
}

function agrees(pattern: readonly string[], path: readonly string[]): boolean {
  for (let i = 0; i < pattern.length; i++) {
    if (pattern[i] !== '' && pattern[i] !== path[i]) return false;
  }
  return true;
}

function segmentsOf({ parameters }: Known<unknown>, path: readonly string[]): Record<string, string> | null {
  const segments: Record<string, string> = {};
  for (const [at, name] of parameters) {
    const value = decoded(path[at] as string);
    if (value === null || value === '') return null;
    segments[name] = value;
  }
  return segments;
}

/**
 * Returns the lookup key of a path: its number of segments and its second segment, such as `posts` in
 * `/api/posts/{post}`. Paths with the same key are tried in order.
 */
const group = (parts: readonly string[]) => `${parts.length} ${parts[2]}`;

export function createRouter<E extends Routed>(endpoints: readonly E[]): FindEndpoint<E> {
  const groups = new Map<string, Known<E>[]>();
  for (const endpoint of endpoints) {
    const known = knownOf(endpoint);
    const name = group(known.pattern);
    const list = groups.get(name) ?? [];
    groups.set(name, list);
    list.push(known);
  }
  return (verb, path) => {
    const parts = path.split('/');
    let other: 'other_verb' | null = null;
    for (const known of groups.get(group(parts)) ?? []) {
      if (!agrees(known.pattern, parts)) continue;
      const segments = segmentsOf(known, parts);
      if (segments === null) continue;
      if (known.endpoint.verb === verb) return { endpoint: known.endpoint, segments };
      other = 'other_verb';
    }
    return other;
  };
}
