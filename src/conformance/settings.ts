/** Checks of the bot's settings. Each check restores the settings that it changes. */
import type { ErrorName } from '../errors.js';
import { type Check, expectLike, expectTrue, type Session, show } from './check.js';

const check = (proves: string, run: Check['run']): Check => ({
  subject: 'settings of the bot',
  proves,
  needs: [],
  run,
});

/** The checks change the bot's texts and commands in this language. */
const language_code = 'kk';

const texts = (
  [
    ['Name', 'name', 64, 'name_too_long'],
    ['Description', 'description', 512, 'description_too_long'],
    ['ShortDescription', 'short_description', 120, 'short_description_too_long'],
  ] as const
).map(([suffix, parameter, most, tooLong]) =>
  check(`setMy${suffix} sets up to ${most} characters for a language`, (s) =>
    changesText(s, suffix, parameter, most, tooLong),
  ),
);

async function changesText(
  s: Session,
  suffix: string,
  parameter: string,
  most: number,
  tooLong: ErrorName,
): Promise<void> {
  const [get, set] = [`getMy${suffix}`, `setMy${suffix}`];
  const read = async (code?: string) =>
    (await s.result(get, code === undefined ? {} : { language_code: code }))[parameter];
  const [before, usual] = [await read(language_code), await read()];
  const longest = 'ж'.repeat(most);
  try {
    await s.result(set, { [parameter]: longest, language_code });
    expectTrue((await read(language_code)) === longest, `${get} does not return what ${set} set`);
    expectTrue((await read()) === usual, `${set} for a language changed the default`);
    await s.refused(set, { [parameter]: `${longest}ж`, language_code }, tooLong);
    await s.refused(set, { [parameter]: 'x', language_code: 'xx' }, 'language_invalid');
    await s.result(set, { [parameter]: '', language_code });
    expectTrue((await read(language_code)) === usual, `${get} without a text does not return the default`);
  } finally {
    await s.result(set, { [parameter]: before === usual ? '' : before, language_code });
  }
}

async function commands(s: Session): Promise<void> {
  const scope = { type: 'all_private_chats' };
  const at = { scope, language_code };
  const before = await s.result('getMyCommands', at);
  const list = [
    { command: 'start', description: 'Begins' },
    { command: 'help_me', description: 'Помощь' },
  ];
  try {
    await s.result('setMyCommands', { ...at, commands: list });
    expectLike(await s.result('getMyCommands', at), list, 'the commands');
    await s.refused(
      'setMyCommands',
      { ...at, commands: [{ command: 'A b', description: 'x' }] },
      'command_invalid',
    );
    const many = Array.from({ length: 101 }, (_, i) => ({ command: `c${i}`, description: 'x' }));
    await s.refused('setMyCommands', { ...at, commands: many }, 'too_many_commands');
    await s.result('deleteMyCommands', at);
    expectLike(await s.result('getMyCommands', at), [], 'the commands');
  } finally {
    if (before.length > 0) await s.result('setMyCommands', { ...at, commands: before });
    else await s.result('deleteMyCommands', at);
  }
}

async function menuButton(s: Session): Promise<void> {
  const before = await s.result('getChatMenuButton');
  const menu_button = { type: 'web_app', text: 'Open', web_app: { url: 'https://example.org/' } };
  try {
    await s.result('setChatMenuButton', { menu_button });
    expectLike(await s.result('getChatMenuButton'), menu_button, 'the menu button');
    const plain = { ...menu_button, web_app: { url: 'http://example.org/' } };
    await s.refused('setChatMenuButton', { menu_button: plain }, 'button_url_invalid');
  } finally {
    await s.result('setChatMenuButton', { menu_button: before });
  }
}

async function rights(s: Session): Promise<void> {
  const before = await s.result('getMyDefaultAdministratorRights');
  const others = await s.result('getMyDefaultAdministratorRights', { for_channels: true });
  const can_pin_messages = !before.can_pin_messages;
  try {
    await s.result('setMyDefaultAdministratorRights', { rights: { ...before, can_pin_messages } });
    expectLike(await s.result('getMyDefaultAdministratorRights'), { can_pin_messages }, 'the rights');
    expectLike(
      await s.result('getMyDefaultAdministratorRights', { for_channels: true }),
      others,
      'the rights in channels',
    );
  } finally {
    await s.result('setMyDefaultAdministratorRights', { rights: before });
  }
}

export const settingChecks: readonly Check[] = [
  ...texts,
  check('commands are set, returned and deleted', commands),
  check('the menu button is set and returned', menuButton),
  check('the default rights of administrators are set and returned', rights),
  check('getUserProfilePhotos returns the photos of the bot', async (s) => {
    const { total_count, photos } = await s.result('getUserProfilePhotos', { user_id: s.me.id });
    expectTrue(photos.length <= total_count, `${photos.length} photos of ${total_count}`);
  }),
  check('setMessageReaction is refused', (s) =>
    s.refused('setMessageReaction', { chat_id: s.me.id, message_id: 1 }, 'bots_cant_react'),
  ),
  check('close and logOut change nothing', async (s) => {
    for (const method of ['close', 'logOut']) {
      await s.result(method);
      const me = await s.result('getMe');
      expectTrue(me.id === s.me.id, `getMe after ${method} answered ${show(me)}`);
    }
  }),
];
