/** Finds the endpoint of a verb and a path. */
import type { Endpoint } from './endpoint.js';

export interface Match {
  readonly endpoint: Endpoint;
  /** Decoded segments by name. */
  readonly segments: Readonly<Record<string, string>>;
}

/** `other_verb` when the path is known, but not with this verb. */
export type FindEndpoint = (verb: string, path: string) => Match | 'other_verb' | null;

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}

function matchPath(pattern: readonly string[], path: readonly string[]): Record<string, string> | null {
  const segments: Record<string, string> = {};
  for (const [i, part] of pattern.entries()) {
    const given = path[i] as string;
    if (!part.startsWith('{')) {
      if (part !== given) return null;
      continue;
    }
    const value = decoded(given);
    if (value === null || value === '') return null;
    segments[part.slice(1, -1)] = value;
  }
  return segments;
}

export function createRouter(endpoints: readonly Endpoint[]): FindEndpoint {
  const byLength = new Map<
    number,
    Array<{ readonly endpoint: Endpoint; readonly pattern: readonly string[] }>
  >();
  for (const endpoint of endpoints) {
    const pattern = endpoint.path.split('/');
    const list = byLength.get(pattern.length) ?? [];
    byLength.set(pattern.length, list);
    list.push({ endpoint, pattern });
  }
  return (verb, path) => {
    const parts = path.split('/');
    let other: 'other_verb' | null = null;
    for (const { endpoint, pattern } of byLength.get(parts.length) ?? []) {
      const segments = matchPath(pattern, parts);
      if (segments === null) continue;
      if (endpoint.verb === verb) return { endpoint, segments };
      other = 'other_verb';
    }
    return other;
  };
}
