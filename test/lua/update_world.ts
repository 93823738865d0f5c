import type { Case } from './cases.js';
import { bot, direct, keys, partitionOf, type Seed, seeds } from './world.js';

export const home = partitionOf(direct);
export const open = (partition = home, fields = {}) => seeds.open(partition, fields);
export const full = (partition = home, entries = 1): Seed[] => [
  open(partition, { hw: 1 }),
  seeds.stream(keys.journal(partition), entries),
];
export const queue = {
  ...{
    meta: keys.meta(home),
    journal: keys.journal(home),
    state: keys.queueState(bot),
    queue: keys.queue(bot),
    retries: keys.retries(bot),
  },
  ...{ marks: keys.queueMarks(bot), channel: keys.botChannel(bot), due: keys.webhooksDue(home) },
};
export const state = `queue_state:${bot}`;
export const stream = `queue:${bot}`;
export type More = Partial<Case> & Pick<Case, 'answer'>;

export const update = (version: number, value = 'x', kind = ['1', 'message']) => [
  `${version}`,
  ...kind,
  '-100777',
  value,
  'r',
  'f',
  'p',
  '',
  '',
];
export const three = [open(), seeds.queue({ bytes: 300 }), seeds.entry(39), seeds.entry(40), seeds.entry(41)];
export const ids = (rows: unknown) => (rows as [Buffer][]).map(([id]) => String(id));
