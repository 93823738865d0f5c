import { z } from 'zod';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';

/** Always fails, because bots cannot react (interface §1). The method exists so that libraries get a clear error. */
export const setMessageReaction = defineMethod({
  name: 'setMessageReaction',
  effect: 'change',
  summary: 'Always fails: bots cannot set reactions.',
  params: z.object({}),
  errors: ['bots_cant_react'],
  result: done,
  handler: () => fail('bots_cant_react'),
});
