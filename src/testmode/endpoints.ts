/** Lists the endpoints of the test server. They exist in no other role. */
import { z } from 'zod';
import { fail } from '../errors.js';
import { ruleLimits } from '../rules/limits.js';
import type { Dispatch } from '../server/dispatch.js';
import type { Outcome } from '../server/idempotency.js';
import { parseWith } from '../server/method.js';
import type { Params } from '../server/params.js';
import type { Time } from '../time.js';
import { boolean, integer, json, optional, text } from '../wire/schema.js';
import { actionNamed, personNamed } from './actions.js';
import type { TestClock } from './clock.js';
import { type Faults, onDelivery } from './faults.js';
import { type InnerCall, innerCall, innerResult } from './inner_call.js';
import { testModeLimits as limits } from './limits.js';
import { entryKinds, type Recording } from './recording.js';
import type { World, Worlds } from './worlds.js';

export interface TestContext {
  readonly worlds: Worlds;
  readonly recording: Recording;
  readonly faults: Faults;
  readonly methodNamed: (name: string) => { readonly name: string } | undefined;
  readonly dispatch: Dispatch;
  readonly clock: TestClock;
  readonly time: Time;
  /** The machine's clock. */
  readonly machine: Time;
  /** The call's parameters, without those in the path. */
  readonly given: Params;
  /** The call's body, if it contains files. */
  readonly form: InnerCall['form'];
}

export interface TestEndpoint {
  readonly verb: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly summary: string;
  readonly params: z.ZodType;
  /** Returns the result, or an `Outcome` that is sent unchanged. */
  readonly handler: (context: TestContext, params: never) => unknown;
}

const defineTestEndpoint = <P extends z.ZodType>(endpoint: {
  readonly verb: TestEndpoint['verb'];
  readonly path: string;
  readonly summary: string;
  readonly params: P;
  readonly handler: (context: TestContext, params: z.output<P>) => unknown;
}) => endpoint as TestEndpoint;

/** The application API's answer to an action. It is passed on unchanged. */
export class Passed {
  readonly outcome: Outcome;

  constructor(outcome: Outcome) {
    this.outcome = outcome;
  }
}

const required = (min: number, max: number) =>
  integer().refine((n) => n >= min && n <= max, { error: `an integer from ${min} to ${max}` });
const between = (min: number, max: number) => optional(required(min, max));
const clamped = (max: number) => between(0, max);

const names = 'up to 20 different names of 2 to 16 lower-case letters';
const peopleNames = z
  .array(z.string().regex(/^[a-z]{2,16}$/, { error: names }), { error: names })
  .min(1, { error: names })
  .max(limits.world_people_max, { error: names })
  .refine((list) => new Set(list).size === list.length, { error: names });

const worlds = '/api/test/worlds';
const inWorld = z.object({ world: integer() });

/** Returns the fields of a world that the endpoints return to tests. */
const view = ({ id, bot, people, chats }: World) => ({ world: id, bot, people, chats });

export const testEndpoints: readonly TestEndpoint[] = [
  defineTestEndpoint({
    verb: 'POST',
    path: worlds,
    summary:
      'Makes a world, which consists of a bot with its token and of people who each have a direct chat with the bot. On request, the world also has a public group and a public channel in which the bot is an administrator.',
    params: z.object({
      people: optional(json(peopleNames)),
      group: optional(boolean),
      channel: optional(boolean),
      inline: optional(boolean).describe('Turns on the inline mode of the bot'),
    }),
    handler: async ({ worlds: all }, { people = ['ann'], group = false, channel = false, inline = false }) =>
      view(await all.create({ people, group, channel, inline })),
  }),
  defineTestEndpoint({
    verb: 'GET',
    path: `${worlds}/{world}`,
    summary: 'Returns a world.',
    params: inWorld,
    handler: ({ worlds: all }, p) => view(all.find(p.world)),
  }),
  defineTestEndpoint({
    verb: 'DELETE',
    path: `${worlds}/{world}`,
    summary: 'Removes a world and its recording. The tokens of the world stop working.',
    params: inWorld,
    handler: async ({ worlds: all, recording, faults }, p) => {
      await all.remove(p.world);
      recording.remove(p.world);
      faults.clear(p.world);
      return true;
    },
  }),
  defineTestEndpoint({
    verb: 'POST',
    path: `${worlds}/{world}/people/{person}/{action}`,
    summary: 'Performs an action as a person. Returns the application API’s answer.',
    params: inWorld.extend({ person: text, action: text }),
    handler: async ({ worlds: all, recording, dispatch, given, form }, p) => {
      const world = all.find(p.world);
      const { name, token } = personNamed(world, p.person);
      const action = actionNamed(p.action);
      const read = (call: Omit<InnerCall, 'token'>) => innerResult(dispatch, { ...call, token });
      const call = await action.call(world, parseWith(action.params, given) as never, read);
      const began_after = recording.last;
      const outcome = await innerCall(dispatch, { ...call, token, form });
      const { status, body } = outcome;
      const params = { ...given };
      recording.add(world.id, {
        ...{ kind: 'action', name: action.name, person: name, params, status },
        ...{ answer: JSON.parse(body), began_after },
      });
      return new Passed(outcome);
    },
  }),
  defineTestEndpoint({
    verb: 'POST',
    path: `${worlds}/{world}/faults`,
    summary:
      'Delays the next calls of a method or the next webhook deliveries, or makes them fail. Several faults with the same `on` apply in the order in which they were requested.',
    params: inWorld.extend({
      on: text.describe('The name of a method, or `delivery`'),
      delay_ms: clamped(limits.fault_delay_ms_max),
      status: between(400, 599).describe('Replaces the answer'),
      retry_after: between(1, limits.fault_retry_after_max).describe('Seconds'),
      applied: optional(boolean).describe('Carries out the call or delivery, and replaces only its answer'),
      times: between(1, limits.fault_times_max),
    }),
    handler: ({ worlds: all, faults, methodNamed }, p) => {
      const { id } = all.find(p.world);
      if (p.on !== onDelivery && !methodNamed(p.on)) return fail('method_not_found');
      const { delay_ms = 0, status, retry_after, applied = false } = p;
      faults.add(id, p.on, { delay_ms, status, retry_after, applied }, p.times ?? 1);
      return true;
    },
  }),
  defineTestEndpoint({
    verb: 'DELETE',
    path: `${worlds}/{world}/faults`,
    summary: 'Removes all faults that have not been applied yet.',
    params: inWorld,
    handler: ({ worlds: all, faults }, p) => {
      faults.clear(all.find(p.world).id);
      return true;
    },
  }),
  defineTestEndpoint({
    verb: 'GET',
    path: `${worlds}/{world}/recording`,
    summary:
      'Lists a world’s recorded entries, oldest first. With `wait_ms`, waits until the recording has `count` entries.',
    params: inWorld.extend({
      kind: optional(z.enum(entryKinds, { error: `one of: ${entryKinds.join(', ')}` })),
      name: optional(text).describe('Name of the action or method, or kind of the delivered update'),
      after: clamped(ruleLimits.id_max).describe('Skips the entries up to this `n`'),
      count: clamped(limits.recording_page_max),
      wait_ms: clamped(limits.recording_wait_ms_max),
    }),
    handler: async ({ worlds: all, recording, machine }, { world, count = 1, wait_ms = 0, ...filter }) => {
      const { id } = all.find(world);
      return { items: await recording.wait(id, filter, { count, ms: wait_ms, clock: machine }) };
    },
  }),
  defineTestEndpoint({
    verb: 'POST',
    path: '/api/test/clock',
    summary:
      'Moves the server’s clock forward by `advance_ms`. Returns after every delivery that became due was attempted once.',
    params: z.object({ advance_ms: required(1, limits.clock_advance_ms_max) }),
    handler: ({ clock }, { advance_ms }) => clock.advance(advance_ms),
  }),
];
