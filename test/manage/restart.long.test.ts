/** Tests that a conversation with the management bot continues after its process was killed. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fill, texts } from '../../src/manage/texts.js';
import { type Service, startService } from '../support/service.js';
import { newTalker, tokenIn } from './talker.js';

let service: Service;
beforeAll(async () => {
  service = await startService({ flushing: false });
});
afterAll(() => service?.stop());

test('a conversation with the management bot continues after the worker of the bot is killed and restarted', async () => {
  const gina = await newTalker(service, 'gina', 'en');
  await gina.say('/newbot');
  await service.deliver.kill();
  await service.deliver.start();
  expect((await gina.say('Gina')).text).toBe(fill(texts.en.ask_new_username, { name: 'Gina' }));
  expect(tokenIn(await gina.say('gina_bot'))).toMatch(/^\d+:/);
  gina.close();
}, 90_000);
