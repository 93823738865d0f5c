import { expect, test } from 'vitest';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let [ann, ben] = [] as unknown as [TestUser, TestUser];
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  [ann, ben] = await Promise.all([service.newUser('ann'), service.newUser('ben')]);
  bot = await service.newBot(ann, 'keys');
  await service.openChat(ann, bot);
});

const send = (chat_id: number, text: string, reply_markup?: object, more = {}) =>
  service.bot(bot, 'sendMessage', { chat_id, text, reply_markup, ...more });
const shownTo = async (user: TestUser, chat: number) =>
  (await resultOf(service.app(user, 'GET', `/api/chats/${chat}/reply_keyboard`, undefined, 1))).message;

const full = {
  keyboard: [['Yes', ' ', { text: 'No' }], [], [{ text: 'My number', request_contact: true }]],
  resize_keyboard: true,
  one_time_keyboard: true,
  is_persistent: true,
  input_field_placeholder: 'Your choice',
};
const stored = {
  ...full,
  keyboard: [[{ text: 'Yes' }, { text: ' ' }, { text: 'No' }], [{ text: 'My number', request: 'contact' }]],
};

test('the person still sees the last reply keyboard after many messages and an edit, and bots see no reply keyboard', async () => {
  const sent = await resultOf(send(ann.id, 'Choose', full));
  expect(sent).not.toHaveProperty('reply_keyboard');
  expect(sent).not.toHaveProperty('reply_markup');
  const [newest] = await itemsOf(service.app(ann, 'GET', `/api/chats/${bot.id}/messages?limit=1`));
  expect(newest.reply_keyboard).toEqual(stored);
  for (let n = 0; n < 55; n++) await resultOf(send(ann.id, `More ${n}`));
  const { message_id } = sent;
  await resultOf(service.bot(bot, 'editMessageText', { chat_id: ann.id, message_id, text: 'Choose one' }));
  const shown = await shownTo(ann, bot.id);
  expect(shown).toMatchObject({ message_id, text: 'Choose one', reply_keyboard: stored });
  await resultOf(send(ann.id, 'Bye', { remove_keyboard: true }));
  expect((await shownTo(ann, bot.id)).reply_keyboard).toEqual({ remove_keyboard: true });
  await resultOf(send(ann.id, 'Name?', { force_reply: true, input_field_placeholder: 'Name' }));
  const forced = { force_reply: true, input_field_placeholder: 'Name' };
  expect((await shownTo(ann, bot.id)).reply_keyboard).toEqual(forced);
});

test('a copied message has the reply keyboard from the copying call, and a deleted message shows no reply keyboard', async () => {
  const from = { chat_id: ann.id, from_chat_id: ann.id };
  const { message_id } = await resultOf(send(ann.id, 'Original', full));
  const copied = await resultOf(
    service.bot(bot, 'copyMessage', { ...from, message_id, reply_markup: { keyboard: [['Copy']] } }),
  );
  const shown = await shownTo(ann, bot.id);
  expect(shown).toMatchObject({
    ...copied,
    text: 'Original',
    reply_keyboard: { keyboard: [[{ text: 'Copy' }]] },
  });
  await resultOf(service.bot(bot, 'forwardMessage', { ...from, message_id }));
  expect(await shownTo(ann, bot.id)).toMatchObject(copied);
  await resultOf(service.bot(bot, 'deleteMessage', { chat_id: ann.id, ...copied }));
  expect(await shownTo(ann, bot.id)).toBeUndefined();
});

test('only mentioned members and the author of the replied-to message see a selective keyboard', async () => {
  const group = await service.newGroup(ann, 'Selective', [ben, bot]);
  const shown = async (user: TestUser) => (await shownTo(user, group))?.text;
  await resultOf(send(group, 'For all', { keyboard: [['A']] }));
  await resultOf(send(group, `For @${ben.username.toUpperCase()}`, { keyboard: [['B']], selective: true }));
  expect(await Promise.all([ann, ben].map(shown))).toEqual(['For all', expect.stringMatching(/^For @BEN/)]);
  const asked = await resultOf(service.app(ann, 'POST', `/api/chats/${group}/messages`, { text: 'And me?' }));
  const reply = { reply_parameters: { message_id: asked.message_id } };
  await resultOf(send(group, 'For ann', { remove_keyboard: true, selective: true }, reply));
  expect(await Promise.all([ann, ben].map(shown))).toEqual(['For ann', expect.stringMatching(/^For @BEN/)]);
  await resultOf(send(group, 'Over', { remove_keyboard: true }));
  expect(await Promise.all([ann, ben].map(shown))).toEqual(['Over', 'Over']);
  const { status } = await service.app(
    await service.newUser('eve'),
    'GET',
    `/api/chats/${group}/reply_keyboard`,
  );
  expect(status).toBe(403);
});

test.each([
  [{ keyboard: [[{ text: '' }]] }, 'keyboard button text is empty'],
  [{ keyboard: [['']] }, 'keyboard button text is empty'],
  [{ keyboard: [[{}]] }, "can't parse reply keyboard markup JSON object"],
  [{ keyboard: 'Yes' }, "can't parse reply keyboard markup JSON object"],
  [{ keyboard: [['Yes']], selective: 1 }, "can't parse reply keyboard markup JSON object"],
  [{ keyboard: [Array(101).fill('Yes')] }, 'reply markup is too long'],
  [{ keyboard: [['x'.repeat(16 * 1024 + 1)]] }, 'reply markup is too long'],
  [{ force_reply: true, input_field_placeholder: 'x'.repeat(65) }, 'input field placeholder is too long'],
])('a message with the reply keyboard %.80j is refused', async (markup, why) => {
  const before = await shownTo(ann, bot.id);
  const { status, body } = await send(ann.id, 'Choose', markup);
  expect([status, body.description]).toEqual([400, `Bad Request: ${why}`]);
  expect(await shownTo(ann, bot.id)).toEqual(before);
});

test.each([{ keyboard: [] }, { keyboard: [[]] }, { remove_keyboard: false }, {}])(
  'a message with the empty markup %j has no reply keyboard',
  async (markup) => {
    const before = await shownTo(ann, bot.id);
    await resultOf(send(ann.id, 'Nothing', markup));
    expect(await shownTo(ann, bot.id)).toEqual(before);
  },
);
