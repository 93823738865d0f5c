/**
 * Runs one table of steps with grammY, and in the long tier also with Telegraf. Both libraries are unmodified. Only the
 * address of the service is set.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { png } from '../support/samples.js';
import type { Service } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { sampled } from '../support/tiers.js';
import { type Balancer, startBalancer } from './balancer.js';
import { chatSteps } from './chat_steps.js';
import { grammy } from './grammy_bot.js';
import { mediaSteps } from './media_steps.js';
import { messageSteps } from './message_steps.js';
import { openPlace, type Place } from './step.js';
import { telegraf } from './telegraf_bot.js';

let service: Service;
let balancer: Balancer;

onSharedService(async (running) => {
  service = running;
  // Consecutive calls and polls go to different fronts.
  balancer = await startBalancer(service.fronts);
});
afterAll(async () => {
  await balancer?.close();
});

const libraries = [
  ['grammY', grammy],
  ['Telegraf', telegraf],
] as const;
describe.each(sampled(libraries, 1))('%s', (_name, library) => {
  let place: Place;
  beforeAll(async () => {
    place = await openPlace(service, library, balancer.url, png(16, 16));
  });
  afterAll(() => place?.bot.stop());

  for (const { name, run } of [...messageSteps, ...mediaSteps, ...chatSteps]) test(name, () => run(place));

  test('a bot built on a library receives updates of all kinds, each once and in order', () => {
    const ids = place.bot.received.map(({ update_id }) => update_id);
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
    const kinds = new Set(place.bot.received.flatMap((update) => Object.keys(update)));
    for (const kind of ['message', 'callback_query', 'channel_post', 'edited_channel_post', 'chat_member'])
      expect(kinds).toContain(kind);
  });
});
