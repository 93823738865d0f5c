/** Tests who may add a person to groups and channels. A call by anybody else creates an invitation instead. */
import { beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { ask } from '../support/postgres_pair.js';
import { type Answer, resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
/** The person whom the tests add to groups. Each test creates a new person without any chats. */
let vera: TestUser;
let fred: TestUser;

onSharedService(async (running) => {
  service = running;
  ann = await service.newUser('ann');
  fred = await service.newUser('fred');
  await service.newGroup(ann, 'Friends', [fred]);
});
beforeEach(async () => {
  vera = await service.newUser('vera');
});

interface Invitation {
  readonly chat: { readonly id: number; readonly title: string };
  readonly from: { readonly id: number };
}

const app = (who: TestUser, verb: string, path: string, body?: object) =>
  service.app(who, verb, path, body, 1);
const ok = (who: TestUser, verb: string, path: string, body?: object) => resultOf(app(who, verb, path, body));
const add = (by: TestUser, chat: number, who: TestUser, body = {}) =>
  app(by, 'PUT', `/api/chats/${chat}/members/${who.id}`, body);
const statusOf = async (answer: Promise<Answer>) => (await resultOf(answer)).status;
const choose = (who: TestUser, add_to_groups: string) => ok(who, 'PATCH', '/api/me', { add_to_groups });
const invitations = async (who: TestUser): Promise<Invitation[]> =>
  (await ok(who, 'GET', '/api/me/invitations')).items;
const chatsOf = async (who: TestUser): Promise<number[]> =>
  (await ok(who, 'GET', '/api/chats')).items.map(({ id }: { id: number }) => id);
const refusal = (answer: Answer) => [answer.status, answer.body.description];

const query = (text: string, values: unknown[] = []) =>
  ask<Answer['body']>(service.databaseUrl, text, values);

test('only the person can see their setting that says who may add them to groups', async () => {
  expect((await ok(vera, 'GET', '/api/me')).add_to_groups).toBe('everyone');
  for (const choice of ['shared_chats', 'nobody', 'everyone']) {
    expect((await choose(vera, choice)).add_to_groups).toBe(choice);
    for (const front of [0, 1])
      expect((await resultOf(service.app(vera, 'GET', '/api/me', undefined, front))).add_to_groups).toBe(
        choice,
      );
  }
  expect(refusal(await app(vera, 'PATCH', '/api/me', { add_to_groups: 'friends' }))).toEqual([
    400,
    'Bad Request: parameter "add_to_groups" must be one of: everyone, shared_chats, nobody',
  ]);
  expect((await ok(vera, 'PATCH', '/api/me', { language_code: 'ru' })).add_to_groups).toBe('everyone');
});

test.each([
  ['everyone', 'member', 'member'],
  ['shared_chats', 'invited', 'member'],
  ['nobody', 'invited', 'invited'],
])(
  'with the choice %s, a person added by a stranger is %s, and a person added by somebody from a shared chat is %s',
  async (choice, stranger, known) => {
    await choose(vera, choice);
    const group = await service.newGroup(ann, 'By a stranger');
    expect(await statusOf(add(ann, group, vera))).toBe(stranger);
    expect((await chatsOf(vera)).includes(group)).toBe(stranger === 'member');
    const common = await service.newGroup(vera, 'Common', [ann]);
    const other = await service.newGroup(ann, 'By somebody known');
    expect(await statusOf(add(ann, other, vera))).toBe(known);
    expect((await chatsOf(vera)).includes(other)).toBe(known === 'member');
    expect(common).toBeLessThan(0);
  },
);

test('an invitation can be accepted or declined only once', async () => {
  await choose(vera, 'nobody');
  const [one, two] = [await service.newGroup(ann, 'One'), await service.newGroup(ann, 'Two')];
  for (const group of [one, two, one]) expect(await statusOf(add(ann, group, vera))).toBe('invited');
  const found = await invitations(vera);
  expect(found.map(({ chat, from }) => [chat.id, chat.title, from.id])).toEqual([
    [two, 'Two', ann.id],
    [one, 'One', ann.id],
  ]);
  const gone = [404, 'Not Found: invitation not found'];
  expect(refusal(await app(fred, 'POST', `/api/me/invitations/${one}/accept`))).toEqual(gone);
  expect((await app(vera, 'GET', `/api/chats/${one}`)).status).toBe(403);
  expect(await ok(vera, 'POST', `/api/me/invitations/${one}/accept`)).toBe(true);
  expect(await ok(vera, 'POST', `/api/me/invitations/${two}/decline`)).toBe(true);
  expect(await chatsOf(vera)).toEqual([one]);
  expect(await invitations(vera)).toEqual([]);
  for (const answer of ['accept', 'decline'])
    for (const group of [one, two])
      expect(refusal(await app(vera, 'POST', `/api/me/invitations/${group}/${answer}`))).toEqual(gone);
  expect(refusal(await add(ann, two, vera))).toEqual([400, 'Bad Request: user declined the invitation']);
  expect(await invitations(vera)).toEqual([]);
});

test('a person who left a group can be invited but not added again, and can rejoin without accepting the invitation', async () => {
  const body = { type: 'group', title: 'Public', username: `public_${vera.id}` };
  const { id: group } = await ok(ann, 'POST', '/api/chats', body);
  expect(await statusOf(add(ann, group, vera))).toBe('member');
  await ok(vera, 'POST', `/api/chats/${group}/leave`);
  expect(await statusOf(add(ann, group, vera))).toBe('invited');
  expect(await chatsOf(vera)).toEqual([]);
  await ok(vera, 'POST', `/api/me/invitations/${group}/decline`);
  await ok(vera, 'POST', `/api/chats/${group}/join`);
  expect(await chatsOf(vera)).toEqual([group]);
  expect(await invitations(vera)).toEqual([]);
  // A removed person can be added again without an invitation, because this person did not choose to leave.
  await ok(ann, 'DELETE', `/api/chats/${group}/members/${vera.id}`);
  expect(await statusOf(add(ann, group, vera))).toBe('member');
});

test('an invitation expires after 30 days', async () => {
  const group = await service.newGroup(ann, 'Left', [vera]);
  await ok(vera, 'POST', `/api/chats/${group}/leave`);
  expect(await statusOf(add(ann, group, vera))).toBe('invited');
  await query("update chat_invitations set created_at = now() - interval '31 days' where user_id = $1", [
    vera.id,
  ]);
  expect(await invitations(vera)).toEqual([]);
  expect((await app(vera, 'POST', `/api/me/invitations/${group}/accept`)).status).toBe(404);
  // After an invitation has expired, a new invitation can be created.
  expect(await statusOf(add(ann, group, vera))).toBe('invited');
  expect(await invitations(vera)).toHaveLength(1);
});

test('a person can add fifty strangers to groups per day, and further strangers are only invited', async () => {
  const eve = await service.newUser('eve');
  const group = await service.newGroup(eve, 'Everybody');
  const people: TestUser[] = [];
  for (let n = 0; n <= limits.strangers_added_per_day_max; n++)
    people.push(await service.newUser(`added${n}`));
  const made: string[] = [];
  // Adds people in batches, because a person may run only a limited number of calls that add members at the same time.
  for (let n = 0; n < people.length; n += limits.settings_calls_waiting_max) {
    const some = people.slice(n, n + limits.settings_calls_waiting_max);
    made.push(...(await Promise.all(some.map((person) => statusOf(add(eve, group, person))))));
  }
  expect(made.filter((status) => status === 'invited')).toHaveLength(1);
  expect(made.filter((status) => status === 'member')).toHaveLength(limits.strangers_added_per_day_max);
  const invited = people[made.indexOf('invited')] as TestUser;
  expect((await invitations(invited)).map(({ chat }) => chat.id)).toEqual([group]);
  // The limit applies only to strangers: people who share a chat with the caller can still be added. The limit ends
  // after a day.
  const other = await service.newGroup(eve, 'Others');
  expect(await statusOf(add(eve, other, people[made.indexOf('member')] as TestUser))).toBe('member');
  expect(await statusOf(add(eve, other, vera))).toBe('invited');
  await query("update stranger_adds set created_at = created_at - interval '1 day' where by_id = $1", [
    eve.id,
  ]);
  const [rosa, third] = [await service.newUser('rosa'), await service.newGroup(eve, 'Third')];
  expect(await statusOf(add(eve, third, rosa))).toBe('member');
});

test('after ten strangers have added a person to groups in a day, an eleventh stranger can only invite the person', async () => {
  const strangers: TestUser[] = [];
  for (let n = 0; n <= limits.stranger_adds_per_day_max; n++)
    strangers.push(await service.newUser(`stranger${n}`));
  const groups: number[] = [];
  for (const stranger of strangers) groups.push(await service.newGroup(stranger, 'Strange'));
  const made = await Promise.all(strangers.map((by, n) => statusOf(add(by, groups[n] as number, vera))));
  expect(made.filter((status) => status === 'member')).toHaveLength(limits.stranger_adds_per_day_max);
  expect(made.filter((status) => status === 'invited')).toHaveLength(1);
  expect(await invitations(vera)).toHaveLength(1);
  const common = await service.newGroup(vera, 'Common', [fred]);
  expect(await statusOf(add(fred, await service.newGroup(fred, 'Known'), vera))).toBe('member');
  expect(common).toBeLessThan(0);
});

test('a person has at most ten open invitations from one inviter, and a hundred in total', async () => {
  await choose(vera, 'nobody');
  const full = [400, 'Bad Request: user has too many invitations'];
  for (let n = 0; n < limits.invitations_per_inviter_max; n++)
    expect(await statusOf(add(ann, await service.newGroup(ann, `Own ${n}`), vera))).toBe('invited');
  expect(refusal(await add(ann, await service.newGroup(ann, 'One more'), vera))).toEqual(full);
  await query(
    `with made as (insert into chats (type, title, creator_id) select 'group', 'x', $1 from generate_series(1, $3) returning id)
     insert into chat_invitations (user_id, chat_id, by_id) select $2, id, 0 from made`,
    [ann.id, vera.id, limits.invitations_per_user_max - limits.invitations_per_inviter_max],
  );
  expect(refusal(await add(fred, await service.newGroup(fred, 'Full'), vera))).toEqual(full);
  const seen: number[] = [];
  for (let cursor = ''; ; ) {
    const page = await ok(vera, 'GET', `/api/me/invitations?limit=30${cursor}`);
    seen.push(...page.items.map(({ chat }: Invitation) => chat.id));
    if (page.next_cursor === undefined) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  expect([seen.length, new Set(seen).size]).toEqual([100, 100]);
});

test('a call that adds a stranger without a username gets the same answer as a call that adds an unknown id', async () => {
  await query('update users set username = null where id = $1', [vera.id]);
  const group = await service.newGroup(ann, 'Ids');
  const nobody = await add(ann, group, { ...vera, id: 999_999_999 });
  expect(refusal(nobody)).toEqual([404, 'Not Found: user not found']);
  expect((await add(ann, group, vera)).body).toEqual(nobody.body);
});
