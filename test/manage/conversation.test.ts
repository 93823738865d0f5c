/** People talk with the management bot: over HTTP, as the application does, with the event stream. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { texts } from '../../src/manage/texts.js';
import { resultOf, type Service, startService } from '../support/service.js';
import { newTalker, tokenIn } from './talker.js';

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.stop());

test('a person creates a bot, and its token works', async () => {
  const t = texts.en;
  const ann = await newTalker(service, 'ann', 'en');
  expect((await ann.say('/newbot')).text).toBe(t.ask_new_name);
  expect((await ann.say('Weather')).text).toContain('Weather');
  expect((await ann.say('no')).text).toBe(t.username_invalid);
  expect((await ann.say('petrelbot')).text).toBe(t.username_taken.replace('{username}', 'petrelbot'));
  const made = await ann.say('@weather_1_bot');
  const token = tokenIn(made);
  expect(await resultOf(service.bot(token, 'getMe'))).toMatchObject({
    username: 'weather_1_bot',
    first_name: 'Weather',
  });
  expect((await ann.history())[0]).toMatchObject({ text: made.text });
  ann.close();
});
