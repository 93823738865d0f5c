/** Sets the oldest supported version of each server. The tests run with these versions. */

export const postgresVersionMin = 15;
export const redisVersionMin = '7.0';
export const valkeyVersionMin = '7.2';

/** Compares versions. The result is negative if `a` is older than `b`. Ignores suffixes such as `-rc1`. */
function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => (/^[\d.]*/.exec(text)?.[0] ?? '').split('.').map(Number));
  for (let i = 0; i < 3; i++) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

export function postgresVersionProblem(version: string): string | null {
  return Number.parseInt(version, 10) >= postgresVersionMin
    ? null
    : `PostgreSQL ${version} is too old, ${postgresVersionMin} or newer is needed`;
}

export interface RedisVersion {
  readonly name: 'Redis' | 'Valkey';
  readonly version: string;
  readonly problem: string | null;
}

/** Parses the output of INFO. Valkey always reports `redis_version` 7.2, so its own version field is used instead. */
export function redisVersion(info: string): RedisVersion {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  const valkey = field('valkey_version');
  const name = valkey === undefined ? 'Redis' : 'Valkey';
  const version = valkey ?? field('redis_version') ?? '0';
  const least = valkey === undefined ? redisVersionMin : valkeyVersionMin;
  const problem =
    compareVersions(version, least) < 0
      ? `${name} ${version} is too old, ${name} ${least} or newer is needed`
      : null;
  return { name, version, problem };
}
