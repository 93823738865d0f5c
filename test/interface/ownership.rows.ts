/** Interface tests of the ownership of bots (interface §3). */
import { expect } from 'vitest';
import type { Bot, Case, Person } from './case.js';
import { abilities } from './fields.rows.js';
import { bad, ok, type Row, refusal, row, unauthorized } from './row.js';
import { botUser } from './shapes.js';

interface Handed {
  readonly bot: Bot;
  readonly heir: Person;
}

const path = (bot: Bot, rest = '') => `/api/me/bots/${bot.id}${rest}`;
const notOwner = refusal(403, 'Forbidden: not the owner of the bot');

/** Creates a bot whose token every node has cached, and a person to whom the bot will be transferred. */
async function handed(c: Case): Promise<Handed> {
  const [bot, heir] = [await c.bot(), await c.person()];
  for (const _ of [1, 2]) expect((await c.get(bot, 'getMe')).status).toBe(200);
  return { bot, heir };
}

const transfer = (c: Case, by: Person, { bot, heir }: Handed, confirm: unknown = true) =>
  c.app(by, 'POST', path(bot, '/transfer'), { username: heir.username, confirm });
async function listed(c: Case, by: Person): Promise<number[]> {
  const found: number[] = [];
  for (let cursor = ''; ; ) {
    const page = await c.appResult(by, 'GET', `/api/me/bots?limit=100${cursor}`);
    found.push(...page.items.map(({ id }: { id: number }) => id));
    if (page.next_cursor === undefined) return found;
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

async function stays(c: Case, { bot, heir }: Handed): Promise<void> {
  expect((await c.get(bot, 'getMe')).body).toEqual(ok({ ...botUser(bot), ...abilities }));
  expect(await listed(c, c.owner)).toContain(bot.id);
  expect(await listed(c, heir)).toEqual([]);
}

export const ownershipRows: readonly Row[] = [
  row({
    title:
      '§3 Bot ownership: owned by A, transfer to another user, confirmed by owner → owned by the recipient, who sees it in the list; A loses access immediately',
    arrange: handed,
    act: (c, at) => transfer(c, c.owner, at),
    answer: () => ok(true),
    async after(c, { bot, heir }) {
      for (const _ of [1, 2]) {
        expect((await c.get(bot, 'getMe')).body).toEqual(unauthorized);
        expect((await c.app(c.owner, 'GET', path(bot))).body).toEqual(notOwner);
        expect((await c.app(c.owner, 'GET', path(bot, '/token'))).body).toEqual(notOwner);
        expect(await listed(c, heir)).toEqual([bot.id]);
        expect(await listed(c, c.owner)).not.toContain(bot.id);
      }
      const { token } = await c.appResult(heir, 'GET', path(bot, '/token'));
      for (const _ of [1, 2]) {
        expect((await c.get({ token }, 'getMe')).body).toEqual(ok({ ...botUser(bot), ...abilities }));
      }
    },
  }),
  row({
    title: '§3 Bot ownership: owned by A, transfer without confirmation → refused, owned by A',
    arrange: handed,
    act: (c, at) => transfer(c, c.owner, at, false),
    answer: () => bad('parameter "confirm" must be true'),
    after: stays,
  }),
  row({
    title: '§3 Bot ownership: owned by A, transfer by the recipient → refused, owned by A',
    arrange: handed,
    act: (c, at) => transfer(c, at.heir, at),
    answer: () => notOwner,
    after: stays,
  }),
  row({
    title: '§3 Bot ownership: owned by A, transfer to an unknown user → refused, owned by A',
    arrange: handed,
    act: (c, { bot, heir }) => transfer(c, c.owner, { bot, heir: { ...heir, username: 'nobody_at_all' } }),
    answer: () => bad('user @nobody_at_all not found'),
    after: stays,
  }),
];
