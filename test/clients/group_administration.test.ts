/** Tests a grammY bot that administers a group by commands of its owner. */
import { Bot, InputFile } from 'grammy';
import { expect, test } from 'vitest';
import { png } from '../support/samples.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  bot = await service.newBot(ann, 'sheriff');
});

/** Welcomes new members, and says goodbye to members who leave. Carries out the commands in the owner's replies. */
function createSheriff(): Bot {
  const made = new Bot(bot.token, { client: { apiRoot: service.fronts[0]?.url as string } });
  made.on('message:new_chat_members', async (context) => {
    for (const { id, first_name } of context.message.new_chat_members)
      if (id !== context.me.id) await context.reply(`Welcome, ${first_name}`);
  });
  made.on('message:left_chat_member', async (context) => {
    await context.reply(`Goodbye, ${context.message.left_chat_member.first_name}`);
  });
  made.command('mute', async (context) => {
    await context.restrictChatMember(Number(context.match), { can_send_messages: false });
    await context.reply('muted');
  });
  made.command('unmute', async (context) => {
    const may = { can_send_messages: true, can_send_other_messages: true, can_send_polls: true };
    await context.restrictChatMember(Number(context.match), may);
    await context.reply('unmuted');
  });
  made.command('promote', async (context) => {
    await context.promoteChatMember(Number(context.match), { can_pin_messages: true });
    await context.setChatAdministratorCustomTitle(Number(context.match), 'Deputy');
    const members = await context.getChatAdministrators();
    await context.reply(members.map((each) => ('custom_title' in each ? each.custom_title : '')).join(''));
  });
  made.command('name', async (context) => {
    await context.setChatTitle(context.match);
    await context.setChatDescription(`About ${context.match}`);
    await context.setChatPhoto(new InputFile(png(64, 64), 'a.png'));
    const chat = await context.getChat();
    await context.reply(`${chat.title}, ${chat.description}, ${chat.photo ? 'photo' : 'no photo'}`);
  });
  made.command('ban', async (context) => {
    await context.banChatMember(Number(context.match));
    await context.reply((await context.getChatMember(Number(context.match))).status);
  });
  made.command('unban', async (context) => {
    await context.unbanChatMember(Number(context.match), { only_if_banned: true });
    await context.reply('unbanned');
  });
  made.catch(async ({ ctx, error }) => {
    await ctx.reply(String((error as { description?: string }).description));
  });
  return made;
}

test('a grammY bot can welcome, mute, promote, rename and ban members of a group', async () => {
  const username = `sheriff_town_${bot.id}`;
  const { id } = await resultOf(
    service.app(ann, 'POST', '/api/chats', { type: 'group', title: 'Town', username }),
  );
  const rights = Object.fromEntries(
    ['can_restrict_members', 'can_promote_members', 'can_pin_messages', 'can_change_info'].map((name) => [
      name,
      true,
    ]),
  );
  const member = { status: 'administrator', rights };
  await resultOf(service.app(ann, 'PUT', `/api/chats/${id}/members/${bot.id}`, member));
  const sheriff = createSheriff();
  const running = sheriff.start({ allowed_updates: ['message'] });
  const say = (who: TestUser, text: string) =>
    service.app(who, 'POST', `/api/chats/${id}/messages`, { text });
  const replied = (text: string) =>
    expect
      .poll(
        async () => {
          const shown = await itemsOf(service.app(ann, 'GET', `/api/chats/${id}/messages?limit=100`));
          const own = shown.filter((message: { from: { id: number } }) => message.from.id === bot.id);
          return own.map((message: { text?: string }) => message.text);
        },
        { timeout: 30_000 },
      )
      .toContain(text);
  const order = async (text: string, reply: string) => {
    await resultOf(say(ann, text));
    await replied(reply);
  };
  try {
    await resultOf(service.app(ben, 'POST', `/api/chats/${id}/join`));
    await replied('Welcome, ben');
    await order(`/mute ${ben.id}`, 'muted');
    expect((await say(ben, 'x')).body.description).toBe(
      'Bad Request: not enough rights to send text messages to the chat',
    );
    await order(`/unmute ${ben.id}`, 'unmuted');
    await resultOf(say(ben, 'free'));
    await order(`/promote ${ben.id}`, 'Deputy');
    await order('/name Village', 'Village, About Village, photo');
    await order(`/ban ${ann.id}`, "Bad Request: can't remove chat owner");
    await order(`/ban ${ben.id}`, 'kicked');
    expect((await service.app(ben, 'POST', `/api/chats/${id}/join`)).status).toBe(403);
    await order(`/unban ${ben.id}`, 'unbanned');
    await resultOf(service.app(ben, 'POST', `/api/chats/${id}/join`));
    await resultOf(service.app(ben, 'POST', `/api/chats/${id}/leave`));
    await replied('Goodbye, ben');
  } finally {
    await sheriff.stop();
    await running;
  }
}, 120_000);
