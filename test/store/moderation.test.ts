import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { addPerson } from '../../src/postgres/chats/invitations.js';
import { putMember } from '../../src/postgres/chats/members.js';
import { ban, restrict } from '../../src/postgres/chats/moderation.js';
import { postgresLimits as limits } from '../../src/postgres/limits.js';
import type { ChatRef } from '../../src/store/core/keys.js';
import { makeUser, type Person, startCluster, type TestCluster, type TestNode } from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
let owner: Person;
let helper: Person;
let ben: Person;
let chat: ChatRef;

beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
  [owner, helper, ben] = [await makeUser(node), await makeUser(node), await makeUser(node)];
});
afterAll(() => cluster?.close());
beforeEach(async () => {
  chat = await node.store.chats.create('group', 'Yard', owner.id);
  await put(helper, 'administrator', { can_invite_users: true });
  await put(ben, 'member');
});

const person = ({ id }: Person) => ({ id, is_bot: false });
const put = (who: Person, status: 'administrator' | 'member' | 'kicked', rights = {}, by = owner) =>
  putMember(node.db, chat.id, person(who), status, rights, by.id);
const change = (member: Person) => ({ chat: chat.id, by: person(owner), member: person(member) });
const add = (status: 'administrator' | 'member', by: Person) =>
  addPerson(node.db, chat.id, ben.id, { status, rights: {} }, by.id);
const kept = async () => (await put(ben, 'member', {}, ben)).status;
const refusal = (kind: string) => expect.objectContaining({ kind });

test('adding a person again does not lift a restriction that was just committed', async () => {
  await restrict(node.db, change(ben), { can_send_photos: true }, null);
  await expect(add('member', helper)).rejects.toEqual(refusal('not_enough_rights'));
  await expect(add('member', ben)).rejects.toEqual(refusal('not_enough_rights'));
  expect((await add('member', owner))?.status).toBe('member');
});

test('only the creator can demote or remove an administrator who was just appointed', async () => {
  await put(helper, 'administrator', { can_invite_users: true, can_restrict_members: true });
  await put(ben, 'administrator', { can_invite_users: true });
  await expect(add('member', helper)).rejects.toEqual(refusal('not_enough_rights'));
  await expect(put(ben, 'kicked', {}, helper)).rejects.toEqual(refusal('not_enough_rights'));
  expect((await put(ben, 'kicked')).status).toBe('kicked');
});

test('a demoted administrator cannot add, promote or remove members', async () => {
  await put(helper, 'member');
  await expect(put(ben, 'kicked', {}, helper)).rejects.toEqual(refusal('not_enough_rights'));
  await expect(add('administrator', helper)).rejects.toEqual(refusal('not_enough_rights'));
  await expect(add('member', helper)).rejects.toEqual(refusal('not_enough_rights'));
  expect(await kept()).toBe('member');
});

test('an administrator without the right to restrict members cannot remove a member', async () => {
  await expect(put(ben, 'kicked', {}, helper)).rejects.toEqual(refusal('not_enough_rights'));
  expect(await kept()).toBe('member');
  await put(helper, 'administrator', { can_restrict_members: true });
  expect((await put(ben, 'kicked', {}, helper)).status).toBe('kicked');
});

test('only bans in force count towards the maximum number of bans', async () => {
  const fill = (until: string) =>
    node.db.query(
      `insert into chat_members (chat_id, member_id, is_bot, status, until_date)
       select $1, 9000000000000 + n, false, 'kicked', ${until} from generate_series(1, ${limits.banned_per_chat_max}) n
       on conflict (chat_id, member_id) do update set status = 'kicked', until_date = excluded.until_date`,
      [chat.id],
    );
  await fill('null');
  await expect(ban(node.db, change(ben), null)).rejects.toEqual(refusal('too_many_banned'));
  await expect(put(ben, 'kicked')).rejects.toEqual(refusal('too_many_banned'));
  await fill('1');
  expect(await ban(node.db, change(ben), null)).toBe(true);
});
