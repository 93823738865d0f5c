import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { firstWithin } from '../support/times.js';

let service: Service;
let user: TestUser;
let bot: TestBot;
let other: TestBot;
let group: number;

onSharedService(async (running) => {
  service = running;
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'editor');
  other = await service.newBot(user, 'listener');
  await service.openChat(user, bot);
  group = await service.newGroup(user, 'Team', [bot, other]);
});

const call = (method: string, params: object, front = 0, from = bot) =>
  service.bot(from, method, { ...params }, front);
const send = async (chat_id: number, text: string): Promise<number> =>
  (await resultOf(call('sendMessage', { chat_id, text }))).message_id;
const refused = async (answer: ReturnType<typeof call>, code: number, description: string) =>
  expect((await answer).body).toMatchObject({ ok: false, error_code: code, description });
const edited = async (from: TestBot) => {
  const updates = await resultOf(call('getUpdates', {}, 0, from));
  return updates.flatMap((update: { edited_message?: object }) => update.edited_message ?? []);
};
const wrongFile = 'Bad Request: wrong file identifier/HTTP URL specified';
const cantEdit = "Bad Request: message can't be edited";

test('interface §8: of 50 simultaneous edits on two fronts, one succeeds and the others get 429 with retry_after', async () => {
  const answers = await firstWithin(1_000, async () => {
    const message_id = await send(user.id, 'start');
    return Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        call('editMessageText', { chat_id: user.id, message_id, text: `edit ${i}` }, i % 2),
      ),
    );
  });
  const [done, ...more] = answers.filter(({ status }) => status === 200);
  expect(more).toEqual([]);
  for (const { status, body } of answers) {
    if (status === 200) continue;
    expect(body).toEqual({
      ok: false,
      error_code: 429,
      description: 'Too Many Requests: retry after 1',
      parameters: { retry_after: 1 },
    });
  }
  const [newest] = await itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages?limit=1`));
  expect(newest.text).toBe(done?.body.result.text);
});

test('interface §4.3.6: a message can be edited once per second', async () => {
  const message_id = await send(user.id, 'chunk');
  let text = 'chunk';
  for (let i = 0; i < 5; i++) {
    const unchanged = await call('editMessageText', { chat_id: user.id, message_id, text }, i % 2);
    expect(unchanged.body.description).toMatch(/^Bad Request: message is not modified/);
    text += ` ${i}`;
    const { text: shown, edit_date } = await resultOf(
      call('editMessageText', { chat_id: user.id, message_id, text }, (i + 1) % 2),
    );
    expect(shown).toBe(text);
    expect(Math.abs(edit_date - Date.now() / 1000)).toBeLessThan(30);
    await sleep(1_000);
  }
});

test('interface §4.3.5, §5.12: a bot with can_edit_messages may edit messages of other senders, and other bots get an update', async () => {
  const path = `/api/chats/${group}/messages`;
  const { message_id } = await resultOf(service.app(user, 'POST', path, { text: "the user's" }));
  const edit = () => call('editMessageText', { chat_id: group, message_id, text: "the bot's" });
  await refused(edit(), 400, cantEdit);
  const grant = (rights: object) =>
    resultOf(
      service.app(user, 'PUT', `/api/chats/${group}/members/${bot.id}`, { status: 'administrator', rights }),
    );
  await grant({ can_pin_messages: true });
  await refused(edit(), 400, cantEdit);
  await grant({ can_edit_messages: true });
  expect(await resultOf(edit())).toMatchObject({ text: "the bot's", from: { id: user.id } });
  await expect
    .poll(() => edited(other))
    .toMatchObject([{ message_id, text: "the bot's", from: { id: user.id } }]);
  expect(await edited(bot)).toEqual([]);
  // In a direct chat, a bot cannot have the right can_edit_messages, because direct chats have no administrators.
  const own = await resultOf(service.app(user, 'POST', `/api/chats/${bot.id}/messages`, { text: 'mine' }));
  const theirs = { chat_id: user.id, message_id: own.message_id, text: 'x' };
  await refused(call('editMessageText', theirs), 400, cantEdit);
});

test('behaviour §7: editMessageCaption refuses text messages, and edit methods refuse service messages and unknown messages', async () => {
  const message_id = await send(user.id, 'plain');
  const noCaption = 'Bad Request: there is no caption in the message to edit';
  const at = { chat_id: user.id, message_id };
  await refused(call('editMessageCaption', { ...at, caption: 'c' }), 400, noCaption);
  const patch = `/api/chats/${bot.id}/messages`;
  const { message_id: mine } = await resultOf(service.app(user, 'POST', patch, { text: 'mine' }));
  await refused(service.app(user, 'PATCH', `${patch}/${mine}`, { caption: 'c' }), 400, noCaption);
  await refused(
    service.app(user, 'PATCH', `${patch}/${mine}`, {}),
    400,
    'Bad Request: message text is empty',
  );
  await resultOf(call('pinChatMessage', at));
  const pin = { chat_id: user.id, message_id: mine + 1 };
  for (const [method, more] of [
    ['editMessageText', { text: 'x' }],
    ['editMessageCaption', { caption: 'x' }],
    ['editMessageReplyMarkup', {}],
  ] as const)
    await refused(call(method, { ...pin, ...more }), 400, cantEdit);
  const missing = { chat_id: user.id, message_id: mine + 100, caption: 'x' };
  await refused(call('editMessageCaption', missing), 400, 'Bad Request: message to edit not found');
  const long = { ...at, caption: 'x'.repeat(1_025) };
  await refused(call('editMessageCaption', long), 400, 'Bad Request: message caption is too long');
});

test('interface §2, §4.3.5, behaviour §7: a photo can be replaced by other media with a caption', async () => {
  const photo = 'https://example.org/a.jpg';
  const media = {
    type: 'video',
    media: 'https://example.org/b.mp4',
    caption: '<b>new</b>',
    parse_mode: 'HTML',
  };
  const { sent, at, changed, tooOften } = await firstWithin(1_000, async () => {
    const sent = await resultOf(call('sendPhoto', { chat_id: user.id, photo, caption: 'first' }));
    const at = { chat_id: user.id, message_id: sent.message_id };
    const noText = 'Bad Request: there is no text in the message to edit';
    await refused(call('editMessageText', { ...at, text: 'x' }), 400, noText);
    const same = { type: 'photo', media: photo, caption: 'first' };
    const unchanged = await call('editMessageMedia', { ...at, media: same });
    expect(unchanged.body.description).toMatch(/^Bad Request: message is not modified/);
    // The refused edit does not count against the edit rate, so another edit succeeds within the same second.
    const changed = await resultOf(call('editMessageMedia', { ...at, media: JSON.stringify(media) }, 1));
    const tooOften = await call('editMessageCaption', { ...at, caption: 'too soon' });
    return { sent, at, changed, tooOften };
  });
  expect(changed).toMatchObject({
    ...{ message_id: sent.message_id, caption: 'new', video: { width: 0, duration: 0 } },
    caption_entities: [{ type: 'bold', offset: 0, length: 3 }],
  });
  expect([changed.photo, typeof changed.edit_date]).toEqual([undefined, 'number']);
  expect([tooOften.status, tooOften.headers['retry-after']]).toEqual([429, '1']);
  await sleep(1_050);
  const recaptioned = await resultOf(call('editMessageCaption', { ...at, caption: 'last' }));
  expect(recaptioned).toMatchObject({ caption: 'last', video: changed.video });
  await sleep(1_050);
  expect(await resultOf(call('editMessageCaption', at))).not.toHaveProperty('caption');
  const message_id = await send(user.id, 'words');
  await refused(
    call('editMessageMedia', { chat_id: user.id, message_id, media }),
    400,
    "Bad Request: message media can't be edited",
  );
  const ftp = { ...media, media: 'ftp://example.org/b.mp4' };
  await refused(call('editMessageMedia', { ...at, media: ftp }), 400, wrongFile);
  const kinds = 'Bad Request: parameter "media.type" must be one of: ';
  const { body } = await call('editMessageMedia', { ...at, media: { ...media, type: 'sticker' } });
  expect(body.description.startsWith(kinds)).toBe(true);
});

test('behaviour §7: a button press allows one more edit within the same second, for at most two button presses', async () => {
  for (const [chat_id, path] of [
    [user.id, `/api/chats/${bot.id}/messages`],
    [group, `/api/chats/${group}/messages`],
  ] as const) {
    const statuses = await firstWithin(1_000, async () => {
      const reply_markup = { inline_keyboard: [[{ text: 'next', callback_data: 'next' }]] };
      const { message_id } = await resultOf(call('sendMessage', { chat_id, text: 'page', reply_markup }));
      let page = 0;
      const edit = async () => {
        const params = { chat_id, message_id, text: `page ${++page}`, reply_markup };
        return (await call('editMessageText', params, page % 2)).status;
      };
      const press = () =>
        resultOf(service.app(user, 'POST', `${path}/${message_id}/callback`, { data: 'next' }));
      for (let presses = 0; presses < 3; presses++) await press();
      const four = [await edit(), await edit(), await edit(), await edit()];
      await press();
      return [...four, await edit(), await edit()];
    });
    expect(statuses).toEqual([200, 200, 200, 429, 200, 429]);
  }
});
