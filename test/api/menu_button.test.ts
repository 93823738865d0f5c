import { createHmac } from 'node:crypto';
import { Api } from 'grammy';
import pg from 'pg';
import { expect, test } from 'vitest';
import { png } from '../support/samples.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let [ann, ben, stranger] = [] as unknown as TestUser[];
let bot: TestBot;
let api: Api;

onSharedService(async (running) => {
  service = running;
  [ann, ben, stranger] = await Promise.all(['ann', 'ben', 'sam'].map((name) => service.newUser(name)));
  bot = await service.newBot(ann as TestUser, 'shop');
  for (const person of [ann, ben]) await service.openChat(person as TestUser, bot);
  api = new Api(bot.token, { apiRoot: service.fronts[0]?.url as string });
});

const url = 'https://shop.example/start';
const shop = { type: 'web_app', text: 'Shop', web_app: { url } } as const;
const idOf = (person: TestUser | undefined) => person?.id as number;
type Params = Readonly<Record<string, unknown>>;

const call = (method: string, params: Params = {}, front = 1) => service.bot(bot, method, params, front);
const page = (person: TestUser | undefined, of = bot) =>
  resultOf(service.app(person as TestUser, 'GET', `/api/bots/${of.username}`));
const refusal = async (method: string, params: Params) => {
  const { status, body } = await call(method, params);
  return [status, body.description];
};

test('grammY sets the default menu button and the button of one person', async () => {
  expect(await api.getChatMenuButton()).toEqual({ type: 'default' });
  expect(await api.setChatMenuButton({ menu_button: shop })).toBe(true);
  expect(await resultOf(call('getChatMenuButton'))).toEqual(shop);
  expect(await api.getChatMenuButton({ chat_id: idOf(ann) })).toEqual(shop);
  expect(await api.setChatMenuButton({ chat_id: idOf(ann), menu_button: { type: 'commands' } })).toBe(true);
  expect(await resultOf(call('getChatMenuButton', { chat_id: idOf(ann) }))).toEqual({ type: 'commands' });
  expect(await api.getChatMenuButton({ chat_id: idOf(ben) })).toEqual(shop);
  expect(await page(ann)).not.toHaveProperty('menu_button');
  expect((await page(ben)).menu_button).toEqual(shop);
  await api.setChatMenuButton({ chat_id: idOf(ann), menu_button: { type: 'default' } });
  expect((await page(ann)).menu_button).toEqual(shop);
  await api.setChatMenuButton({});
  expect(await api.getChatMenuButton({ chat_id: idOf(ben) })).toEqual({ type: 'default' });
  expect(await page(ben)).not.toHaveProperty('menu_button');
});

test("when a person opens the menu button, the URL contains the person's signed identity", async () => {
  await api.setChatMenuButton({ chat_id: idOf(ann), menu_button: shop });
  const path = `/api/bots/${bot.username}/menu`;
  const opened = await resultOf(service.app(ann as TestUser, 'POST', path, { url }));
  expect(opened.url).toMatch(`${url}#tgWebAppData=`);
  const data = new URLSearchParams(new URL(opened.url).hash.slice(1)).get('tgWebAppData') as string;
  const { hash, ...fields } = Object.fromEntries(new URLSearchParams(data));
  const text = Object.keys(fields)
    .sort()
    .map((name) => `${name}=${fields[name]}`)
    .join('\n');
  const secret = createHmac('sha256', 'WebAppData').update(bot.token).digest();
  expect(hash).toBe(createHmac('sha256', secret).update(text).digest('hex'));
  expect(JSON.parse(fields.user as string).id).toBe(idOf(ann));
  for (const [who, given] of [
    [ben, url],
    [ann, 'https://other.example/'],
  ] as const) {
    const none = await service.app(who as TestUser, 'POST', path, { url: given });
    expect([none.status, none.body.description]).toEqual([400, 'Bad Request: button not found']);
  }
});

test("a person who may not write to a bot cannot open the bot's menu button", async () => {
  const owner = await service.newUser('olga');
  const shy = await service.newBot(owner, 'shy');
  const button = { type: 'web_app', text: 'Shop', web_app: { url } };
  await resultOf(service.bot(shy, 'setChatMenuButton', { menu_button: button }));
  await resultOf(service.app(owner, 'PUT', `/api/me/bots/${shy.id}/write_access`, { policy: 'owner' }));
  const open = (who: TestUser) => service.app(who, 'POST', `/api/bots/${shy.username}/menu`, { url });
  expect((await open(owner)).status).toBe(200);
  expect(await open(ann as TestUser)).toMatchObject({
    status: 403,
    body: { description: "Forbidden: you can't write to this bot" },
  });
  await resultOf(service.app({ token: service.adminToken }, 'POST', `/api/admin/bots/${shy.id}/suspension`));
  expect((await open(owner)).status).toBe(403);
});

test.each([
  [{ menu_button: 'x' }, "can't parse menu button JSON object"],
  [{ menu_button: [] }, "can't parse menu button JSON object"],
  [{ menu_button: { type: 'x' } }, "can't parse menu button: MenuButton has unsupported type"],
  [{ menu_button: {} }, "can't parse menu button: MenuButton has unsupported type"],
  [{ menu_button: { ...shop, text: ' ' } }, 'BUTTON_TEXT_INVALID'],
  [{ menu_button: { ...shop, text: 'x'.repeat(65) } }, 'BUTTON_TEXT_INVALID'],
  [{ menu_button: { type: 'web_app', text: 'Shop' } }, 'BUTTON_URL_INVALID'],
  [{ menu_button: { ...shop, web_app: { url: 'http://shop.example/' } } }, 'BUTTON_URL_INVALID'],
  [{ menu_button: { ...shop, web_app: { url: `${url}?${'ж'.repeat(1_100)}` } } }, 'BUTTON_URL_INVALID'],
  [{ chat_id: -5, menu_button: shop }, 'invalid chat_id specified'],
  [{ chat_id: 'x', menu_button: shop }, 'parameter "chat_id" must be an integer'],
  [{ chat_id: 999_999_999, menu_button: shop }, 'chat not found'],
])('setChatMenuButton refuses %j', async (params, text) => {
  const before = await resultOf(call('getChatMenuButton'));
  expect(await refusal('setChatMenuButton', params)).toEqual([400, `Bad Request: ${text}`]);
  expect(await resultOf(call('getChatMenuButton'))).toEqual(before);
});

test('a person without a chat with the bot has no menu button', async () => {
  const at = { chat_id: idOf(stranger) };
  for (const [method, params] of [
    ['getChatMenuButton', at],
    ['setChatMenuButton', { ...at, menu_button: shop }],
  ] as const)
    expect(await refusal(method, params)).toEqual([400, 'Bad Request: chat not found']);
});

test('the menu buttons of a deleted bot and of a deleted account are removed', async () => {
  const eve = await service.newUser('eve');
  const second = await service.newBot(eve, 'brief');
  for (const person of [eve, ben as TestUser]) await service.openChat(person, second);
  await service.openChat(eve, bot);
  const set = async (of: TestBot, params: Params) =>
    resultOf(service.bot(of, 'setChatMenuButton', { menu_button: shop, ...params }));
  await set(second, {});
  await set(second, { chat_id: idOf(ben) });
  await set(bot, { chat_id: eve.id });
  const db = new pg.Client({ connectionString: service.databaseUrl });
  await db.connect();
  const left = async () => {
    const { rows } = await db.query(
      `select (select count(*)::int from bot_menu_buttons where bot_id = $1 or user_id = $2) as own,
         (select count(menu_button)::int from bots where id = $1) as shown`,
      [second.id, eve.id],
    );
    return rows[0];
  };
  expect(await left()).toEqual({ own: 2, shown: 1 });
  await resultOf(service.app(eve, 'DELETE', '/api/me', { confirm: true }));
  expect(await left()).toEqual({ own: 0, shown: 0 });
  await db.end();
});

test('grammY sets the default administrator rights of a bot separately for groups and channels', async () => {
  const none = await api.getMyDefaultAdministratorRights();
  expect(Object.values(none).every((right) => right === false)).toBe(true);
  const rights = { ...none, can_manage_chat: true, can_pin_messages: true, can_delete_messages: true };
  expect(await api.setMyDefaultAdministratorRights({ rights })).toBe(true);
  expect(await api.getMyDefaultAdministratorRights()).toEqual(rights);
  const channel = await api.getMyDefaultAdministratorRights({ for_channels: true });
  expect(channel).toMatchObject({ can_post_messages: false, can_manage_chat: false });
  const posts = { ...channel, can_post_messages: true };
  await api.setMyDefaultAdministratorRights({ rights: posts, for_channels: true });
  const seen = await resultOf(call('getMyDefaultAdministratorRights', { for_channels: true }));
  expect(seen).toEqual({ ...posts, can_manage_chat: true });
  expect((await page(ben)).administrator_rights).toEqual({
    group: ['can_pin_messages', 'can_delete_messages'],
    channel: ['can_post_messages'],
  });
  await api.setMyDefaultAdministratorRights({});
  expect(await api.getMyDefaultAdministratorRights()).toEqual(none);
});

test.each([
  [{ rights: 'x' }, 'parameter "rights" must be an object of rights'],
  [{ rights: { can_pin_messages: 'x' } }, 'parameter "rights.can_pin_messages" must be a boolean'],
  [
    { rights: { is_anonymous: true } },
    'parameter "rights.is_anonymous" must be false: administrators are not anonymous',
  ],
])('setMyDefaultAdministratorRights refuses %j', async (params, text) => {
  expect(await refusal('setMyDefaultAdministratorRights', params)).toEqual([400, `Bad Request: ${text}`]);
});

test('getUserProfilePhotos returns the picture of a bot, and no pictures of people', async () => {
  const empty = { total_count: 0, photos: [] };
  for (const id of [idOf(ann), bot.id]) expect(await api.getUserProfilePhotos(id)).toEqual(empty);
  const answer = await fetch(`${service.fronts[0]?.url}/api/me/bots/${bot.id}/avatar`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${ann?.token}`, 'content-type': 'image/png' },
    body: new Uint8Array(png(300, 300)),
  });
  expect(answer.status).toBe(200);
  const { total_count, photos } = await resultOf(call('getUserProfilePhotos', { user_id: bot.id }));
  expect([total_count, photos.length]).toEqual([1, 1]);
  const widths = photos[0].map(({ width }: { width: number }) => width);
  expect(widths).toEqual([...widths].sort((a: number, b: number) => a - b));
  const { file_path } = await api.getFile(photos[0].at(-1).file_id);
  const file = await fetch(`${service.fronts[0]?.url}/file/bot${bot.token}/${file_path}`);
  expect((await file.arrayBuffer()).byteLength).toBe(photos[0].at(-1).file_size);
  const skipped = await resultOf(call('getUserProfilePhotos', { user_id: bot.id, offset: 1, limit: 500 }));
  expect(skipped).toEqual({ total_count: 1, photos: [] });
});

test.each([
  [{}, 'parameter "user_id" is required'],
  [{ user_id: -1 }, 'invalid user_id specified'],
  [{ user_id: 999_999_999 }, 'user not found'],
])('getUserProfilePhotos refuses %j', async (params, text) => {
  expect(await refusal('getUserProfilePhotos', params)).toEqual([400, `Bad Request: ${text}`]);
});

test('getUserProfilePhotos does not reveal whether a stranger exists', async () => {
  expect(await refusal('getUserProfilePhotos', { user_id: idOf(stranger) })).toEqual([
    400,
    'Bad Request: user not found',
  ]);
});
