import { expect, test } from 'vitest';
import { createTroubles } from '../../src/obs/troubles.js';
import { VirtualTime } from '../support/virtual_time.js';

function listen() {
  const lines: string[] = [];
  const time = new VirtualTime();
  const line = (level: string) => (fields: object, text: string) =>
    void lines.push(`${level} ${text} ${JSON.stringify(fields)}`);
  const log = { error: line('error'), warn: line('warn') } as never;
  return { ...createTroubles(log, time), lines, time };
}

test('the warning about delayed background work names the consequence and the cause', () => {
  const { onDelay, lines } = listen();
  const late = onDelay('doorbell', 'nothing is lost', (error) => (error as Error).message === 'busy');
  late(new Error('busy', { cause: new Error('Redis was away') }));
  late(new Error('broken'));
  expect(lines).toEqual([
    'warn nothing is lost {"source":"doorbell","reason":"busy: Redis was away"}',
    'error doorbell failed {"source":"doorbell","reason":"broken"}',
  ]);
});

test('each kind of failure is logged at most once in five seconds', async () => {
  const { onError, lines, time } = listen();
  const [redis, postgres] = [onError('redis'), onError('postgres')];
  for (let n = 0; n < 3; n++) {
    redis(new Error(`${n}`));
    postgres(new Error(`${n}`));
    await time.advance(2_500);
  }
  expect(lines.map((line) => line.replace(/ \{.*"reason":"(.*)"\}/, ' $1'))).toEqual([
    'error redis failed 0',
    'error postgres failed 0',
    'error redis failed 2',
    'error postgres failed 2',
  ]);
});
