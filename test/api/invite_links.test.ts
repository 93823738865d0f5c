import { expect, test } from 'vitest';
import type { Service, TestBot, TestUser } from '../support/service.js';
import { itemsOf, resultOf } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
let eve: TestUser;
let bot: TestBot;
let other: TestBot;

onSharedService(async (running) => {
  service = running;
  [ann, ben, eve] = [
    await service.newUser('ann'),
    await service.newUser('ben'),
    await service.newUser('eve'),
  ];
  [bot, other] = [await service.newBot(ann, 'doorman'), await service.newBot(ann, 'reader')];
});

type Params = Readonly<Record<string, unknown>>;
// biome-ignore lint/suspicious/noExplicitAny: updates of every shape
type Update = any;

const app = (who: TestUser, verb: string, path: string, body?: Params) => service.app(who, verb, path, body);
const ok = (...call: Parameters<typeof app>) => resultOf(app(...call));
const bad = (text: string) => ({ ok: false, error_code: 400, description: `Bad Request: ${text}` });
const expired = bad('INVITE_HASH_EXPIRED');
const soon = () => Math.floor(Date.now() / 1_000) + 3_600;
const kinds = ['message', 'chat_member', 'chat_join_request'];

async function newGroup(): Promise<number> {
  const chat = await service.newGroup(ann, 'Yard');
  const put = (id: number, rights: object) =>
    ok(ann, 'PUT', `/api/chats/${chat}/members/${id}`, { status: 'administrator', rights });
  await put(bot.id, { can_invite_users: true });
  await put(other.id, { can_change_info: true });
  for (const each of [bot, other])
    await resultOf(service.bot(each, 'getUpdates', { offset: -1, allowed_updates: kinds }));
  return chat;
}
const calling =
  (chat: number, by = bot) =>
  (method: string, params: Params = {}) =>
    service.bot(by, method, { chat_id: chat, ...params });

const join = (who: TestUser, link: string) => app(who, 'POST', '/api/invite_links/join', { link });
const preview = (who: TestUser, link: string) => app(who, 'POST', '/api/invite_links/preview', { link });
const links = (chat: number) => itemsOf(app(ann, 'GET', `/api/chats/${chat}/invite_links`));

async function nextUpdate(by: TestBot, kind: string, chat: number, who = ben): Promise<Update> {
  const concerns = ({ new_chat_member, new_chat_members, from }: Update) =>
    (new_chat_member?.user ?? new_chat_members?.[0] ?? from).id === who.id;
  let found: Update;
  await expect
    .poll(
      async () => {
        const updates: Update[] = await resultOf(service.bot(by, 'getUpdates', { allowed_updates: kinds }));
        const update = updates.find((each) => each[kind]?.chat.id === chat && concerns(each[kind]));
        if (update) await resultOf(service.bot(by, 'getUpdates', { offset: update.update_id + 1 }));
        found = update?.[kind];
        return found !== undefined;
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  return found;
}
const creator = (of: TestBot) => expect.objectContaining({ id: of.id, is_bot: true });

test('a chat_member update shows the invite link only to administrators that may invite people', async () => {
  const chat = await newGroup();
  const { invite_link } = await resultOf(calling(chat)('createChatInviteLink', { name: 'Door' }));
  await resultOf(join(ben, invite_link));
  expect(await nextUpdate(other, 'chat_member', chat)).not.toHaveProperty('invite_link');
  const rights = { status: 'administrator', rights: { can_invite_users: true } };
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${other.id}`, rights);
  await resultOf(join(eve, invite_link));
  expect((await nextUpdate(other, 'chat_member', chat, eve)).invite_link).toMatchObject({
    ...{ creator: creator(bot), name: 'Door' },
    invite_link: `${invite_link.slice(0, invite_link.lastIndexOf('/') + 5)}…`,
  });
  expect((await nextUpdate(bot, 'chat_member', chat, eve)).invite_link).toMatchObject({ invite_link });
});

test('a bot creates, edits and revokes an invite link that people use to join a group', async () => {
  const chat = await newGroup();
  const call = calling(chat);
  const expire_date = soon();
  const made = await resultOf(call('createChatInviteLink', { name: ' Door ', expire_date, member_limit: 5 }));
  expect(made).toEqual({
    ...{ invite_link: expect.stringMatching(/\/app#\/join\/[\w-]{22}$/), creator: creator(bot) },
    ...{ creates_join_request: false, is_primary: false, is_revoked: false },
    ...{ name: 'Door', expire_date, member_limit: 5 },
  });
  const { invite_link } = made;
  expect(await resultOf(preview(ben, invite_link))).toEqual({
    ...{ type: 'group', title: 'Yard', member_count: 3, creates_join_request: false },
  });
  expect(await resultOf(join(ben, invite_link))).toEqual({ status: 'joined', chat_id: chat });
  expect(await resultOf(join(ben, invite_link))).toEqual({ status: 'member', chat_id: chat });
  expect(await resultOf(preview(ben, invite_link))).toMatchObject({ member_count: 4, chat_id: chat });
  const change = await nextUpdate(bot, 'chat_member', chat);
  expect(change).toMatchObject({
    ...{ from: { id: ben.id }, new_chat_member: { status: 'member', user: { id: ben.id } } },
    invite_link: { invite_link, name: 'Door', member_limit: 5 },
  });
  const edited = await resultOf(call('editChatInviteLink', { invite_link, name: 'Gate' }));
  expect(edited).toEqual({
    ...{ invite_link, creator: creator(bot), name: 'Gate' },
    ...{ creates_join_request: false, is_primary: false, is_revoked: false },
  });
  expect(await links(chat)).toMatchObject([{ name: 'Gate', member_count: 1 }]);
  expect(await resultOf(call('revokeChatInviteLink', { invite_link }))).toEqual({
    ...edited,
    is_revoked: true,
  });
  for (const answer of [join(eve, invite_link), preview(eve, invite_link)])
    expect((await answer).body).toEqual(expired);
  for (const method of ['revokeChatInviteLink', 'editChatInviteLink'])
    expect((await call(method, { invite_link })).body).toEqual(expired);
  expect(await links(chat)).toEqual([]);
});

test('exportChatInviteLink and the revocation of the primary invite link both create a new primary link', async () => {
  const chat = await newGroup();
  const call = calling(chat);
  expect(await resultOf(call('getChat'))).not.toHaveProperty('invite_link');
  const first = await resultOf(call('exportChatInviteLink'));
  expect(await resultOf(call('getChat'))).toMatchObject({ invite_link: first });
  expect(await resultOf(calling(chat, other)('getChat'))).not.toHaveProperty('invite_link');
  const second = await resultOf(call('exportChatInviteLink'));
  expect((await join(eve, first)).body).toEqual(expired);
  expect((await call('editChatInviteLink', { invite_link: second })).body).toEqual(
    bad('CHAT_INVITE_PERMANENT'),
  );
  const revoked = await resultOf(call('revokeChatInviteLink', { invite_link: second }));
  expect(revoked).toMatchObject({ invite_link: second, is_primary: true, is_revoked: true });
  const { invite_link: third } = await resultOf(call('getChat'));
  expect(third).not.toBe(second);
  await resultOf(join(eve, third));
});

test('if an invite link needs approval, a person who opens the link waits for the decision of a bot or an administrator', async () => {
  const chat = await newGroup();
  const call = calling(chat);
  const { invite_link } = await resultOf(
    call('createChatInviteLink', { creates_join_request: true, name: 'Ask' }),
  );
  expect(await resultOf(preview(ben, invite_link))).toMatchObject({ creates_join_request: true });
  expect(await resultOf(join(ben, invite_link))).toEqual({ status: 'requested' });
  expect(await resultOf(join(ben, invite_link))).toEqual({ status: 'requested' });
  expect(await resultOf(preview(ben, invite_link))).toMatchObject({ requested: true });
  const asked = await nextUpdate(bot, 'chat_join_request', chat);
  expect(asked).toEqual({
    chat: expect.objectContaining({ id: chat, title: 'Yard' }),
    from: expect.objectContaining({ id: ben.id }),
    ...{ user_chat_id: ben.id, date: expect.any(Number) },
    invite_link: {
      ...{ invite_link, creator: creator(bot), creates_join_request: true, is_primary: false },
      ...{ is_revoked: false, name: 'Ask', pending_join_request_count: 1 },
    },
  });
  expect((await app(ben, 'GET', `/api/chats/${chat}`)).status).toBe(403);
  const requests = () => itemsOf(app(ann, 'GET', `/api/chats/${chat}/join_requests`));
  expect(await requests()).toEqual([
    { user: expect.objectContaining({ id: ben.id }), date: expect.any(Number) },
  ]);
  expect(await resultOf(call('approveChatJoinRequest', { user_id: ben.id }))).toBe(true);
  expect(await nextUpdate(bot, 'chat_member', chat)).toMatchObject({
    ...{ from: { id: bot.id }, new_chat_member: { status: 'member', user: { id: ben.id } } },
    invite_link: { invite_link },
  });
  const [joined] = await itemsOf(app(ben, 'GET', `/api/chats/${chat}/messages`));
  expect(joined).toMatchObject({ from: { id: ben.id }, new_chat_members: [{ id: ben.id }] });
  expect(await nextUpdate(other, 'message', chat)).toMatchObject({ new_chat_members: [{ id: ben.id }] });
  for (const method of ['approveChatJoinRequest', 'declineChatJoinRequest']) {
    for (const member of [ben, bot, other, ann])
      expect((await call(method, { user_id: member.id })).body).toEqual(bad('USER_ALREADY_PARTICIPANT'));
    expect((await call(method, { user_id: eve.id })).body).toEqual(bad('HIDE_REQUESTER_MISSING'));
  }
  await resultOf(join(eve, invite_link));
  expect(await ok(ann, 'POST', `/api/chats/${chat}/join_requests/${eve.id}/decline`)).toBe(true);
  expect(await requests()).toEqual([]);
  await resultOf(join(eve, invite_link));
  expect(await ok(ann, 'POST', `/api/chats/${chat}/join_requests/${eve.id}/approve`)).toBe(true);
  expect((await app(eve, 'GET', `/api/chats/${chat}`)).status).toBe(200);
  const updates: Update[] = await resultOf(service.bot(other, 'getUpdates'));
  expect(updates.filter((each) => each.chat_join_request)).toEqual([]);
});

test('nobody can approve a join request after the person has withdrawn it', async () => {
  const chat = await newGroup();
  const { invite_link } = await resultOf(
    calling(chat)('createChatInviteLink', { creates_join_request: true }),
  );
  const withdraw = (who: TestUser, link = invite_link) =>
    app(who, 'POST', '/api/invite_links/withdraw', { link });
  const missing = { ok: false, error_code: 404, description: 'Not Found: join request not found' };
  await resultOf(join(ben, invite_link));
  await resultOf(join(eve, invite_link));
  expect((await withdraw(ann)).body).toEqual(missing);
  expect((await withdraw(ben, 'unknown')).body).toEqual(expired);
  expect(await resultOf(withdraw(ben))).toBe(true);
  expect((await withdraw(ben)).body).toEqual(missing);
  expect(await resultOf(preview(ben, invite_link))).not.toHaveProperty('requested');
  for (const verb of ['approve', 'decline'])
    expect((await app(ann, 'POST', `/api/chats/${chat}/join_requests/${ben.id}/${verb}`)).body).toEqual(
      missing,
    );
  expect(await itemsOf(app(ann, 'GET', `/api/chats/${chat}/join_requests`))).toMatchObject([
    { user: { id: eve.id } },
  ]);
});

test('a bot that has not set allowed_updates gets updates about join requests', async () => {
  const chat = await service.newGroup(ann, 'Default');
  const fresh = await service.newBot(ann, 'fresh');
  const rights = { can_invite_users: true };
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${fresh.id}`, { status: 'administrator', rights });
  const { invite_link } = await ok(ann, 'POST', `/api/chats/${chat}/invite_links`, {
    creates_join_request: true,
  });
  await resultOf(join(ben, invite_link));
  await expect
    .poll(async () => {
      const updates: Update[] = await resultOf(service.bot(fresh, 'getUpdates'));
      return updates.some((each) => each.chat_join_request?.from.id === ben.id);
    })
    .toBe(true);
  const info = await resultOf(service.bot(fresh, 'getWebhookInfo'));
  expect(info).not.toHaveProperty('allowed_updates');
});

test('an administrator lists, creates and revokes invite links of a channel, including links that bots created', async () => {
  const { id: chat } = await ok(ann, 'POST', '/api/chats', { type: 'channel', title: 'News', private: true });
  const rights = { can_invite_users: true };
  await ok(ann, 'PUT', `/api/chats/${chat}/members/${bot.id}`, { status: 'administrator', rights });
  const made = await resultOf(calling(chat)('createChatInviteLink'));
  const own = await ok(ann, 'POST', `/api/chats/${chat}/invite_links`, { member_limit: 1 });
  expect(own).toMatchObject({ member_limit: 1, member_count: 0, creator: { id: ann.id } });
  expect((await links(chat)).map((link: Update) => link.invite_link)).toEqual([
    own.invite_link,
    made.invite_link,
  ]);
  expect(await resultOf(preview(ben, made.invite_link))).toMatchObject({ type: 'channel', title: 'News' });
  await resultOf(join(ben, own.invite_link));
  expect((await join(eve, own.invite_link)).body).toEqual(expired);
  const { id } = (await links(chat))[1];
  expect(await ok(ann, 'DELETE', `/api/chats/${chat}/invite_links/${id}`)).toBe(true);
  expect((await join(eve, made.invite_link)).body).toEqual(expired);
  expect((await app(ann, 'DELETE', `/api/chats/${chat}/invite_links/${id}`)).body).toEqual(expired);
  expect((await app(ben, 'GET', `/api/chats/${chat}/invite_links`)).body).toEqual(
    bad('not enough rights to manage chat invite link'),
  );
  expect((await app(ben, 'GET', `/api/chats/${chat}/join_requests`)).body).toEqual(
    bad('not enough rights to manage chat join requests'),
  );
});

test('a banned person who opens an invite link gets 403', async () => {
  const chat = await newGroup();
  const link = await resultOf(calling(chat)('exportChatInviteLink'));
  await resultOf(join(ben, link));
  await ok(ann, 'DELETE', `/api/chats/${chat}/members/${ben.id}`);
  for (const answer of [await join(ben, link), await preview(ben, link)]) {
    expect(answer.status).toBe(403);
    expect(answer.body.description).toBe('Forbidden: user was kicked from the chat');
  }
});

test('invite link methods refuse invalid calls with the error texts that libraries expect', async () => {
  const chat = await newGroup();
  const call = calling(chat);
  const refused = async (method: string, params: Params, text: string) =>
    expect((await call(method, params)).body).toEqual(bad(text));
  const invite_link = 'https://t.me/+unknown';
  const methods = [
    'exportChatInviteLink',
    'createChatInviteLink',
    'editChatInviteLink',
    'revokeChatInviteLink',
  ];
  for (const method of methods) {
    await refused(method, { chat_id: ann.id, invite_link }, 'chat not found');
    const refusal = await calling(chat, other)(method, { invite_link });
    expect(refusal.body).toEqual(bad('not enough rights to manage chat invite link'));
  }
  await service.openChat(ann, bot);
  for (const method of methods)
    await refused(method, { chat_id: ann.id, invite_link }, "can't invite members to a private chat");
  for (const method of ['approveChatJoinRequest', 'declineChatJoinRequest']) {
    await refused(method, { chat_id: ann.id, user_id: ben.id }, "the chat can't have join requests");
    const refusal = await calling(chat, other)(method, { user_id: ben.id });
    expect(refusal.body).toEqual(bad('not enough rights to manage chat join requests'));
  }
  const create = 'createChatInviteLink';
  await refused(create, { name: 'x'.repeat(33) }, 'invite link name is too long');
  await refused(create, { expire_date: 1 }, 'EXPIRE_DATE_INVALID');
  await refused(create, { expire_date: -1 }, 'EXPIRE_DATE_INVALID');
  await refused(create, { member_limit: 100_000 }, 'USAGE_LIMIT_INVALID');
  await refused(
    create,
    { member_limit: 1, creates_join_request: true },
    "member limit can't be specified for links requiring administrator approval",
  );
  for (const method of ['editChatInviteLink', 'revokeChatInviteLink']) {
    await refused(method, {}, 'invite link must be non-empty');
    await refused(method, { invite_link }, 'INVITE_HASH_EXPIRED');
  }
  const own = await ok(ann, 'POST', `/api/chats/${chat}/invite_links`, {});
  await refused('revokeChatInviteLink', { invite_link: own.invite_link }, 'INVITE_HASH_EXPIRED');
  expect(await links(chat)).toHaveLength(1);
});
