import type { CallCost, Costs } from '../src/loadtest/capacity_model.js';
import type { Results } from '../src/loadtest/results.js';
import { shares } from '../src/loadtest/shares.js';

type Made = Pick<CallCost, 'rows' | 'messages' | 'reactions'>;

/** How many Postgres rows, messages and reactions each call adds. */
const made: Readonly<Record<string, Made>> = {
  sendMessage: { rows: 1, messages: 1, reactions: 0 },
  editMessageText: { rows: 1, messages: 0, reactions: 0 },
  pinChatMessage: { rows: 2, messages: 1, reactions: 0 },
  reactions: { rows: 2, messages: 0, reactions: 1 },
  forwardMessages: { rows: 100, messages: 100, reactions: 0 },
};
const nothing: Made = { rows: 0, messages: 0, reactions: 0 };

/**
 * Returns how many rows, messages and reactions a call of the mix adds on average. A message from a person counts like
 * a message from a bot.
 */
function madeByMix(): Made {
  const kinds: Readonly<Record<string, Made>> = {
    ...made,
    personWrites: made.sendMessage ?? nothing,
    react: made.reactions ?? nothing,
  };
  const of = (what: keyof Made) =>
    Object.entries(shares).reduce(
      (sum, [kind, share]) => sum + (share / 100) * (kinds[kind]?.[what] ?? 0),
      0,
    );
  const rounded = (what: keyof Made) => Number(of(what).toFixed(3));
  return { rows: rounded('rows'), messages: rounded('messages'), reactions: rounded('reactions') };
}

/** Throws if a measurement is missing, because incomplete costs are useless. The error names the measurement. */
export function costsOf({
  scenarios,
  latencies,
  findings,
  machine,
  settings,
  petrel,
  made_at,
}: Results): Costs {
  const figureOf = (key: string) => {
    const value = findings.find((finding) => finding.key === key)?.value;
    if (typeof value !== 'number') throw new Error(`the costs need a run that measured "${key}"`);
    return value;
  };
  const calls = scenarios.flatMap(({ name, sides, goal }): Array<[string, CallCost]> => {
    // Leaves out scenarios that measure a call on growing data or while idle polls are open, because other scenarios
    // measure the same calls under ordinary conditions.
    if (goal?.growth !== undefined || name === 'idle_polls') return [];
    const side = sides.find(({ role }) => role === 'subject');
    const half = latencies.find(({ scenario, role }) => scenario === name && role === 'subject');
    const cpu = half?.cpu ?? side?.cpu ?? {};
    const of = (part: string) => {
      const us = cpu[part];
      if (typeof us !== 'number') throw new Error(`the CPU time of ${part} is unknown for ${name}`);
      return Math.max(0, Number(us.toFixed(2)));
    };
    const cost = { server: of('server'), redis: of('redis'), flush: of('flush'), postgres: of('postgres') };
    const disk = { aof: Math.round(side?.disk?.redis ?? 0), wal: Math.round(side?.disk?.postgres ?? 0) };
    return [[name, { ...cost, ...(name === 'mix' ? madeByMix() : (made[name] ?? nothing)), ...disk }]];
  });
  const rounded = (key: string) => Math.round(figureOf(key) * 10) / 10;
  return {
    schema: 'petrel-costs',
    version: 2,
    ...{ made_at, petrel, machine },
    measured: Object.entries(settings)
      .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
      .join(', '),
    calls: Object.fromEntries(calls),
    delivery: {
      server: rounded('us of the worker a delivery, 40 connections'),
      redis: rounded('us of Redis a delivery, 40 connections'),
    },
    bytes: {
      message: rounded('bytes of a hot message'),
      update: rounded('bytes of a pending update'),
      reaction: rounded('bytes of a reaction among few'),
      // Subtracts the memory of the one message that the measured chat contains.
      chat: Math.round(figureOf('bytes of a hot chat') - figureOf('bytes of a hot message')),
      bot: rounded('bytes of a bot'),
      request: rounded('bytes of a remembered request'),
    },
    stored: {
      message: rounded('bytes of a stored message'),
      reaction: rounded('bytes of a stored reaction'),
    },
    message_text_bytes: 300,
  };
}
