/**
 * Calls a Lua script with minimal work in the client. Most keys and arguments are prepared once. Each call fills in
 * only the few that change.
 */
import { fileURLToPath } from 'node:url';
import { Command } from 'ioredis';
import type { RedisConnection } from '../../src/redis/connection.js';
import { readScript } from '../../src/redis/scripts/contract.js';

type Value = string | Buffer;
type Values = Readonly<Record<string, Value>>;

export interface Changing {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

export interface BareScript {
  /** Prepares the constant keys and arguments. Throws when a value that the script needs is missing. */
  row(keys: Values, args: Values): readonly Value[];
  /**
   * Runs the script. `changing` has the values for this call: first keys, then arguments, in the order in which
   * `loadBare` got their names. Throws if the script does not return `ok`.
   */
  run(row: readonly Value[], changing: readonly Value[]): Promise<Buffer[]>;
  place(value: string): number;
}

const root = fileURLToPath(new URL('../../../lua', import.meta.url));

export async function loadBare(
  connection: RedisConnection,
  name: string,
  changing: Changing,
): Promise<BareScript> {
  const script = readScript(root, `${name}.lua`);
  await connection.client.script('LOAD', script.source);
  const keyNames = script.keys.map((spec) => spec.name);
  const argNames = script.args.map((spec) => spec.name);
  const [keysFrom, argsFrom] = [2, 2 + keyNames.length];
  const slotOf = (names: readonly string[], from: number) => (each: string) => {
    if (!names.includes(each)) throw new Error(`${name} does not take ${each}`);
    return from + names.indexOf(each);
  };
  const slots = [
    ...changing.keys.map(slotOf(keyNames, keysFrom)),
    ...changing.args.map(slotOf(argNames, argsFrom)),
  ];
  const runSlot = slotOf(argNames, argsFrom)('run');
  const fixed = (names: readonly string[], values: Values, open: readonly string[]) =>
    names.map((each) => {
      if (open.includes(each)) return '';
      const value = values[each];
      if (value === undefined) throw new Error(`the floor does not pass ${each} to ${name}`);
      return value;
    });
  return {
    row: (keys, args) => [
      script.sha,
      String(keyNames.length),
      ...fixed(keyNames, keys, changing.keys),
      ...fixed(argNames, args, [...changing.args, 'run']),
    ],
    async run(row, values) {
      const args = row.slice();
      args[runSlot] = connection.runId() ?? '';
      for (let i = 0; i < slots.length; i++) args[slots[i] as number] = values[i] as Value;
      const command = new Command('evalsha', args as string[], { replyEncoding: null });
      const reply = (await connection.client.sendCommand(command)) as Buffer[];
      const status = String(reply[0]);
      if (status !== 'ok') throw new Error(`${name} answered ${status}`);
      return reply;
    },
    place(value) {
      const at = script.ok.findIndex((spec) => spec.name === value);
      if (at < 0) throw new Error(`${name} does not return ${value}`);
      return 1 + at;
    },
  };
}
