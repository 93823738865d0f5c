import fc from 'fast-check';
import { Command } from 'ioredis';
import { expect, test } from 'vitest';
import { ScriptCommand } from '../../src/redis/scripts/script_command.js';

const arg = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.uint8Array().map((bytes) => Buffer.from(bytes)),
  fc.integer(),
);

test('a script command has the same bytes as a command encoded by ioredis', () => {
  fc.assert(
    fc.property(fc.constantFrom('evalsha' as const, 'eval' as const), fc.array(arg), (verb, args) => {
      const plain = new Command(verb, [...args] as string[], { replyEncoding: null });
      const written = new ScriptCommand(verb, [...args]).toWritable();
      expect(written.equals(Buffer.from(plain.toWritable({})))).toBe(true);
    }),
  );
});
