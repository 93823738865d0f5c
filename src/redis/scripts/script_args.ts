/** Builds the arguments of EVALSHA from the keys and arguments of one or several calls to a script. */
import type { CombinedForm, Script } from './contract.js';
import type { ScriptArg } from './script_command.js';

export type Values = Readonly<Record<string, unknown>>;

/** The keys and arguments of one call, keyed by name. */
export interface CallValues {
  readonly keys: Values;
  readonly args: Values;
  /**
   * The request key that this call shares with other calls of its combined run. Replaces the key `request` in `keys`.
   */
  request?: string | undefined;
}

/** The names of a script's keys and arguments, in order. */
export interface CallShape {
  readonly script: Script;
  readonly keyNames: readonly string[];
  readonly listKey: string | undefined;
  readonly argNames: readonly string[];
  readonly listArg: string | undefined;
}

export function shapeOf(script: Script): CallShape {
  const one = <T extends { name: string; form: string }>(specs: readonly T[]) =>
    specs.filter((s) => s.form !== 'list').map((s) => s.name);
  const list = <T extends { name: string; form: string }>(specs: readonly T[]) =>
    specs.find((s) => s.form === 'list')?.name;
  return {
    script,
    keyNames: one(script.keys),
    listKey: list(script.keys),
    argNames: one(script.args),
    listArg: list(script.args),
  };
}

const argOf = (value: unknown): ScriptArg =>
  typeof value === 'boolean' ? (value ? '1' : '0') : ((value ?? '') as string | Buffer);

const keyOf = ({ keys, request }: CallValues, name: string): string =>
  name === 'request' && request !== undefined ? request : (keys[name] as string);

/** Returns the arguments of a run that executes a single call. */
export function singleArgs(shape: CallShape, runId: string, call: CallValues): ScriptArg[] {
  const { keys, args } = call;
  const { script, keyNames, listKey, argNames, listArg } = shape;
  const listed = listKey === undefined ? [] : (keys[listKey] as string[]);
  const out: ScriptArg[] = [script.sha, keyNames.length + listed.length];
  for (const name of keyNames) out.push(keyOf(call, name));
  out.push(...listed);
  for (const name of argNames) out.push(name === 'run' ? runId : argOf(args[name]));
  if (listArg !== undefined) out.push(...(args[listArg] as string[]));
  return out;
}

/**
 * Returns the arguments of one combined run, which executes several calls of a script. All these calls have the same
 * common keys.
 */
export function combinedArgs(
  { argNames, listArg }: CallShape,
  { sha, commonKeys, ownKeys }: CombinedForm,
  runId: string,
  calls: readonly [CallValues, ...CallValues[]],
): ScriptArg[] {
  const out: ScriptArg[] = [sha, commonKeys.length + ownKeys.length * calls.length];
  for (const name of commonKeys) out.push(calls[0].keys[name] as string);
  for (const call of calls) for (const name of ownKeys) out.push(keyOf(call, name));
  out.push(runId);
  const given = argNames.filter((name) => name !== 'run');
  for (const { args } of calls) {
    const listed = listArg === undefined ? [] : (args[listArg] as string[]);
    out.push(given.length + listed.length);
    for (const name of given) out.push(argOf(args[name]));
    out.push(...listed);
  }
  return out;
}
