/** Seeds a channel with a post, in the states in which scripts in posts/ are called. */
import { limits } from '../../src/limits.js';
import { pack } from '../../src/store/core/codec.js';
import { postId, sharedChat } from '../../src/store/core/keys.js';
import { base, incarnation, keys, partitionOf, type Seed, seeds, user } from './world.js';

export const channel = sharedChat(-100_778);
export const partition = partitionOf(channel);
export const post = postId(partition, 12);
export const key = keys.post(post);
export const heart = '\u2764';
export const external = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
export const other = Buffer.from('ffeeddccbbaa99887766554433221100', 'hex');
export const actedKey = (generation: string | number) => `${keys.acted(post)}${generation}`;
export const userTicket = keys.ticket(actedKey(user));

export const at = {
  ...{
    meta: keys.meta(partition),
    journal: keys.journal(partition),
    post: key,
    post_ticket: keys.ticket(key),
  },
  ...{ user_ticket: userTicket, channel: keys.postChannel(post), due: keys.countsDue(partition) },
  request: keys.request(partition, 'r'),
  ...{ acted: keys.acted(post), chat: keys.chatRoot(partition), member: keys.memberRoot(partition) },
};
export const open = seeds.open(partition);
export const chat = (fields = {}) => seeds.chat(channel, { t: 'channel', ...fields });
export const fresh = seeds.hash(key, { c: `${channel.id}`, m: 7, v: base, u: 0 });
export const one = { [`n:${heart}`]: 1, [`f:${heart}`]: base, [`l:${heart}`]: other };
export const used = seeds.hash(key, {
  c: `${channel.id}`,
  m: 7,
  v: base,
  u: 1,
  g: 5,
  gt: Date.now(),
  ...one,
});
export const many = { [`n:${heart}`]: 160, [`f:${heart}`]: base };
export const ids = (count: number, from: number) =>
  Buffer.concat(Array.from({ length: count }, (_, i) => Buffer.alloc(16, from + i)));
export const latest = ids(limits.reactors_latest_max, 100);
export const older = ids(limits.reactors_kept_max, 1);
export const crowded = seeds.hash(key, {
  ...{ c: `${channel.id}`, m: 7, v: base, u: 0, gt: Date.now() },
  ...{ ...many, [`l:${heart}`]: latest, [`o:${heart}`]: older },
});
export const closed = chat({ t: 'private' });
export const member = (status: string): Seed =>
  seeds.text(keys.member(channel.id, user), pack([9, incarnation, status, {}, false]));
export const full = [seeds.open(partition, { hw: 1 }), seeds.stream(keys.journal(partition), 1)];

export const dueAt =
  (ms: number, member = `${post}`): Seed =>
  (client) =>
    client.zadd(keys.countsDue(partition), ms, member);
