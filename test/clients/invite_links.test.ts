/** Tests a grammY bot that guards a group. The bot creates invite links and decides on join requests. */
import { Bot } from 'grammy';
import { expect, test } from 'vitest';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
let eve: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  [ann, ben, eve] = [
    await service.newUser('ann'),
    await service.newUser('ben'),
    await service.newUser('eve'),
  ];
  bot = await service.newBot(ann, 'porter');
});

test('a grammY bot creates an invite link that needs approval, approves one person and declines another', async () => {
  const group = await service.newGroup(ann, 'Town');
  const rights = { can_invite_users: true };
  const member = { status: 'administrator', rights };
  await resultOf(service.app(ann, 'PUT', `/api/chats/${group}/members/${bot.id}`, member));
  const porter = new Bot(bot.token, { client: { apiRoot: service.fronts[0]?.url as string } });
  const seen: string[] = [];
  porter.on('chat_join_request', async (context) => {
    const { from, invite_link } = context.chatJoinRequest;
    if (from.id === ben.id) await context.approveChatJoinRequest(from.id);
    else await context.declineChatJoinRequest(from.id);
    seen.push(`${from.first_name} asked by ${invite_link?.name}`);
  });
  porter.on('chat_member', (context) => {
    const { new_chat_member, invite_link } = context.chatMember;
    seen.push(`${new_chat_member.user.first_name} is ${new_chat_member.status} by ${invite_link?.name}`);
  });
  const running = porter.start({ allowed_updates: ['chat_join_request', 'chat_member'] });
  try {
    const { invite_link } = await porter.api.createChatInviteLink(group, {
      name: 'Gate',
      creates_join_request: true,
    });
    for (const who of [ben, eve])
      await resultOf(service.app(who, 'POST', '/api/invite_links/join', { link: invite_link }));
    const expected = ['ben asked by Gate', 'ben is member by Gate', 'eve asked by Gate'];
    await expect.poll(() => [...seen].sort(), { timeout: 30_000 }).toEqual(expected);
    await porter.api.revokeChatInviteLink(group, invite_link);
    const again = await service.app(eve, 'POST', '/api/invite_links/join', { link: invite_link });
    expect(again.body.description).toBe('Bad Request: INVITE_HASH_EXPIRED');
    const primary = await porter.api.exportChatInviteLink(group);
    expect((await porter.api.getChat(group)).invite_link).toBe(primary);
  } finally {
    await porter.stop();
    await running;
  }
}, 120_000);
