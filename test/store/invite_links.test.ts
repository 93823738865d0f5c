import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { joinByLink } from '../../src/postgres/chats/join_requests.js';
import { postgresLimits as limits } from '../../src/postgres/limits.js';
import type { Decision, LinkSettings } from '../../src/store/chats/invite_links.js';
import type { MemberChange } from '../../src/store/chats/members.js';
import type { ChatRef } from '../../src/store/core/keys.js';
import {
  makeBot,
  makeUser,
  type Person,
  poll,
  startCluster,
  type TestCluster,
  type TestNode,
} from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
let owner: Person;
let ben: Person;
let eve: Person;
let chat: ChatRef;

beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
  owner = await makeUser(node);
});
afterAll(() => cluster?.close());
beforeEach(async () => {
  [ben, eve] = [await makeUser(node), await makeUser(node)];
  chat = await node.store.chats.create('group', 'Yard', owner.id);
});

const plain: LinkSettings = {
  name: null,
  expire_date: null,
  member_limit: null,
  creates_join_request: false,
};
const create = (settings: Partial<LinkSettings> = {}, by = owner) =>
  node.store.chats.createLink(chat, by.id, { ...plain, ...settings });
const join = (code: string, who: Person, at = node) => at.store.chats.joinByLink(code, who.id);
const refusal = (kind: string) => expect.objectContaining({ kind });
const standing = async (who: Person) => (await node.store.chats.member(chat, who.id)).status;
const person = ({ id }: Person) => ({ id, is_bot: false });
const put = (
  who: Person,
  status: 'administrator' | 'member' | 'kicked' | 'left',
  rights = {},
  is_bot = false,
) => node.store.chats.putMember(chat, { id: who.id, is_bot }, status, rights, owner.id);
const decide = (decision: Decision, who: Person, by = owner) =>
  node.store.chats.decideRequest(chat, by.id, who.id, decision, 'join_request_missing');
const pending = () => node.store.chats.joinRequests(chat, 1e15, 100);

test('the code of an invite link has at least 96 random bits', async () => {
  const { code } = await create();
  expect(Buffer.from(code, 'base64url').length * 8).toBeGreaterThanOrEqual(96);
});

test('if several people join at the same time, only one takes the last place of an invite link', async () => {
  const { code } = await create({ member_limit: 1 });
  const other = await cluster.node();
  const people = [ben, eve, await makeUser(node), await makeUser(node)];
  const joined = await Promise.allSettled(people.map((who, i) => join(code, who, i % 2 ? other : node)));
  expect(joined.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  const reasons = joined.flatMap((each) => (each.status === 'rejected' ? [each.reason.kind] : []));
  expect(reasons).toEqual(Array(3).fill('invite_link_expired'));
  expect((await node.store.chats.links(chat, 1e15, 10))[0]?.members).toBe(1);
  expect(await node.store.chats.find(chat)).toMatchObject({ profile: { m: 2 } });
});

test('when a member who joined by an invite link leaves or is removed, the link admits one more person', async () => {
  const { code } = await create({ member_limit: 1 });
  expect(await join(code, ben)).toEqual({ chat_id: chat.id, status: 'joined' });
  expect(await join(code, ben)).toEqual({ chat_id: chat.id, status: 'member' });
  await expect(join(code, eve)).rejects.toEqual(refusal('invite_link_expired'));
  await put(ben, 'left');
  expect(await join(code, eve)).toMatchObject({ status: 'joined' });
  await put(eve, 'administrator');
  await expect(join(code, ben)).rejects.toEqual(refusal('invite_link_expired'));
  await put(eve, 'kicked');
  expect(await join(code, ben)).toMatchObject({ status: 'joined' });
});

test('an invite link that is revoked, expired or unknown is refused and changes nothing', async () => {
  const [revoked, expired] = [await create(), await create()];
  await node.store.chats.revokeLink(chat, owner.id, { id: revoked.id });
  await node.db.query('update invite_links set expire_date = 1 where id = $1', [expired.id]);
  for (const code of [revoked.code, expired.code, 'unknown', ''])
    await expect(join(code, ben)).rejects.toEqual(refusal('invite_link_expired'));
  expect(await standing(ben)).toBe('none');
  await expect(create({ expire_date: 1 })).rejects.toEqual(refusal('link_expiry_invalid'));
});

test('if an invite link is revoked while people join, the link admits nobody afterwards', async () => {
  const { code, id } = await create();
  const people = await Promise.all(Array.from({ length: 3 }, () => makeUser(node)));
  const joins = people.map((who) => join(code, who).catch(() => null));
  await node.store.chats.revokeLink(chat, owner.id, { id });
  await Promise.all(joins);
  await expect(join(code, ben)).rejects.toEqual(refusal('invite_link_expired'));
});

test('a banned person cannot join by an invite link', async () => {
  const { code } = await create();
  await join(code, ben);
  await join(code, eve);
  await node.store.chats.restrict(chat, person(owner), person(eve), { can_send_photos: true }, null);
  await put(ben, 'kicked');
  await put(eve, 'left');
  await expect(join(code, ben)).rejects.toEqual(refusal('kicked_from_chat'));
  await join(code, eve);
  expect(await standing(eve)).toBe('restricted');
});

test('a suspended person can neither join by an invite link nor be approved', async () => {
  const [open, asking] = [await create(), await create({ creates_join_request: true })];
  await join(asking.code, ben);
  await node.db.query('update users set suspended_at = now() where id = $1', [ben.id]);
  await expect(join(open.code, ben)).rejects.toEqual(refusal('unauthorized'));
  await expect(decide('approve', ben)).rejects.toEqual(refusal('join_request_missing'));
  expect(await pending()).toHaveLength(1);
  expect(await standing(ben)).toBe('none');
});

test('a person who is in the maximum number of chats cannot join by an invite link', async () => {
  const { code } = await create({ member_limit: 1 });
  await node.db.query(
    `with made as (insert into chats (type, title, creator_id)
       select 'group', 'x', $1 from generate_series(1, $2) returning id)
     insert into chat_members (chat_id, member_id, is_bot, status) select id, $1, false, 'member' from made`,
    [ben.id, limits.chats_per_user_max],
  );
  await expect(join(code, ben)).rejects.toEqual(refusal('too_many_chats'));
  expect(await join(code, eve)).toMatchObject({ status: 'joined' });
});

test('only administrators with the right to invite can manage invite links and decide on join requests', async () => {
  const link = await create({ creates_join_request: true });
  await put(eve, 'administrator', { can_change_info: true });
  await join(link.code, ben);
  const { chats } = node.store;
  const links = refusal('invite_links_not_allowed');
  await expect(create({}, eve)).rejects.toEqual(links);
  await expect(chats.exportLink(chat, eve.id)).rejects.toEqual(links);
  await expect(chats.revokeLink(chat, eve.id, { id: link.id })).rejects.toEqual(links);
  const requests = refusal('join_requests_not_allowed');
  await expect(decide('approve', ben, eve)).rejects.toEqual(requests);
  await expect(decide('decline', ben, eve)).rejects.toEqual(requests);
  expect(await pending()).toHaveLength(1);
  await put(eve, 'administrator', { can_invite_users: true });
  await decide('approve', ben, eve);
  expect(await standing(ben)).toBe('member');
});

test('a chat has a limited number of invite links, and expired links do not count', async () => {
  const fill = (expire: string) =>
    node.db.query(
      `insert into invite_links (chat_id, code, creator_id, is_primary, creates_join_request, expire_date)
       select $1::bigint, $1::bigint || '_' || n || ${expire}, $2, false, false, ${expire}::bigint
         from generate_series(1, ${limits.links_per_chat_max}) n`,
      [chat.id, owner.id],
    );
  await fill("'9999999999'");
  await expect(create()).rejects.toEqual(refusal('too_many_invite_links'));
  await node.db.query('update invite_links set expire_date = 1 where chat_id = $1', [chat.id]);
  const { id } = await create();
  await fill("'9999999998'");
  await node.db.query("update invite_links set expire_date = 1 where chat_id = $1 and code like '%8'", [
    chat.id,
  ]);
  const { id: next } = await create();
  const rows = await node.db.query<{ id: number; revoked: boolean }>(
    'select id, revoked_at is not null as revoked from invite_links where chat_id = $1',
    [chat.id],
  );
  expect(rows.filter(({ revoked }) => !revoked).map((row) => row.id)).toEqual([id, next]);
  expect(rows.filter(({ revoked }) => revoked)).toHaveLength(limits.revoked_links_per_chat_max);
});

test('a chat and a person have a limited number of pending join requests', async () => {
  const { code } = await create({ creates_join_request: true });
  await node.db.query(
    `with made as (insert into chats (type, title, creator_id)
       select 'group', 'x', $1 from generate_series(1, $2) returning id)
     insert into join_requests (chat_id, user_id) select id, $1 from made`,
    [ben.id, limits.join_requests_per_user_max],
  );
  await expect(join(code, ben)).rejects.toEqual(refusal('too_many_join_requests'));
  await join(code, eve);
  await node.db.query('alter table join_requests disable trigger all');
  await node.db.query(
    `insert into join_requests (chat_id, user_id)
     select $1, 9000000000000 + n from generate_series(1, ${limits.join_requests_per_chat_max - 1}) n`,
    [chat.id],
  );
  await node.db.query('alter table join_requests enable trigger all');
  await expect(join(code, await makeUser(node))).rejects.toEqual(refusal('too_many_join_requests'));
  expect(await join(code, eve)).toMatchObject({ status: 'requested' });
});

test('a join request ends when the person is approved, declined, banned or joins in another way', async () => {
  const [asking, open] = [await create({ creates_join_request: true }), await create()];
  await join(asking.code, ben);
  await join(asking.code, ben);
  expect((await pending()).map(({ user_id }) => user_id)).toEqual([ben.id]);
  expect(await standing(ben)).toBe('none');
  await decide('decline', ben);
  const missing = refusal('join_request_missing');
  await expect(decide('approve', ben)).rejects.toEqual(missing);
  await join(asking.code, ben);
  await join(open.code, ben);
  expect(await pending()).toEqual([]);
  await expect(decide('approve', ben)).rejects.toEqual(refusal('already_participant'));
  await join(asking.code, eve);
  await put(eve, 'kicked');
  await expect(decide('approve', eve)).rejects.toEqual(missing);
  await node.store.chats.unban(chat, person(owner), person(eve), true);
  await join(asking.code, eve);
  await Promise.allSettled([decide('approve', eve), decide('decline', eve)]);
  expect(await pending()).toEqual([]);
});

test('only bots with the right to invite are notified of a join request', async () => {
  const [deciding, reading] = [await makeBot(node, owner), await makeBot(node, owner)];
  await put(deciding, 'administrator', { can_invite_users: true }, true);
  await put(reading, 'administrator', { can_change_info: true }, true);
  const { code } = await create({ creates_join_request: true });
  const kinds = async (bot: Person) =>
    (await poll(node, bot)).flatMap(({ kind, message }) => {
      const change = message.record.origin.service as unknown as MemberChange;
      return kind === 'chat_join_request' ? [[message.peer.id, change.link?.url]] : [];
    });
  await joinByLink(node.db, code, ben.id);
  expect(await kinds(deciding)).toEqual([]);
  const other = await cluster.node();
  await Promise.all([node, other].map(({ store }) => store.chats.postEvents(chat)));
  await expect.poll(() => kinds(deciding)).toEqual([[chat.id, `/app#/join/${code}`]]);
  expect(await kinds(reading)).toEqual([]);
});

test('when a primary link is revoked, an administrator without the right to invite gets no new primary link', async () => {
  await put(ben, 'administrator', { can_invite_users: true });
  const live = async () => (await node.store.chats.links(chat, 1e15, 100)).filter((link) => !link.is_revoked);
  const before = (await live()).length;
  const primary = await node.store.chats.exportLink(chat, ben.id);
  await put(ben, 'member');
  await node.store.chats.revokeLink(chat, owner.id, { id: primary.id });
  expect(await live()).toHaveLength(before);
});
