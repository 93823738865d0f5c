import { describe, expect, it } from 'vitest';
import { limits } from '../../src/limits.js';
import { type CommandScope, checkCommands, commandsFor, scopeKey } from '../../src/rules/commands.js';

const one = (command: string, description = 'd') => [{ command, description }];

describe('checkCommands', () => {
  it.each([
    ['start', 'start'],
    ['/start', 'start'],
    ['a_1', 'a_1'],
    ['x'.repeat(32), 'x'.repeat(32)],
    [`/${'x'.repeat(32)}`, 'x'.repeat(32)],
  ])('checkCommands stores %s as %s', (given, stored) =>
    expect(checkCommands(one(given))).toEqual(one(stored)),
  );

  it.each(['', '/', '//a', 'Start', 'дом', 'a b', 'a-b', 'a\n', 'x'.repeat(33)])(
    'checkCommands refuses the name %j',
    (name) => {
      expect(() => checkCommands(one(name))).toThrow('Bad Request: BOT_COMMAND_INVALID');
    },
  );

  it('the length of a command description is counted in code points after white space is trimmed', () => {
    const longest = '👍'.repeat(256);
    expect(checkCommands(one('a', ` ${longest} `))).toEqual(one('a', longest));
    for (const bad of ['', '  \n', `${longest}a`]) {
      expect(() => checkCommands(one('a', bad))).toThrow('Bad Request: BOT_COMMAND_DESCRIPTION_INVALID');
    }
  });

  it('a command is stored with its name and description only, without other fields', () => {
    expect(checkCommands([{ command: 'a', description: 'd', more: 1 } as never])).toEqual(one('a'));
  });

  it('the number of commands in a list is limited', () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => one(`c${i}`)[0]!);
    expect(checkCommands([])).toEqual([]);
    expect(checkCommands(many(limits.commands_max))).toHaveLength(limits.commands_max);
    expect(() => checkCommands(many(limits.commands_max + 1))).toThrow('Bad Request: BOT_COMMANDS_TOO_MUCH');
  });
});

describe('scopeKey', () => {
  it.each<[CommandScope | undefined, string]>([
    [undefined, 'default'],
    [{ type: 'default' }, 'default'],
    [{ type: 'all_private_chats' }, 'all_private_chats'],
    [{ type: 'all_group_chats' }, 'all_group_chats'],
    [{ type: 'all_chat_administrators' }, 'all_chat_administrators'],
    [{ type: 'chat', chat_id: -5 }, 'chat:-5'],
    [{ type: 'chat_administrators', chat_id: -5 }, 'chat_administrators:-5'],
    [{ type: 'chat_member', chat_id: -5, user_id: 7 }, 'chat_member:-5:7'],
  ])('the key of scope %j is %s', (scope, key) => expect(scopeKey(scope)).toBe(key));

  it.each([
    [{ type: 'everyone' }, 'Bad Request: parameter "scope" must be a bot command scope'],
    [{ type: 'toString' }, 'Bad Request: parameter "scope" must be a bot command scope'],
    [{ type: 'chat' }, 'Bad Request: parameter "scope.chat_id" must be an integer'],
    [{ type: 'chat', chat_id: '5' }, 'Bad Request: parameter "scope.chat_id" must be an integer'],
    [{ type: 'chat_member', chat_id: 5 }, 'Bad Request: parameter "scope.user_id" must be an integer'],
  ])('the scope %j is refused', (scope, text) => expect(() => scopeKey(scope as never)).toThrow(text));
});

it("a person sees the commands of the narrowest scope, preferably in the person's language", () => {
  const all: Record<string, ReturnType<typeof one>> = {};
  const shown = () => commandsFor(all, 7, 'ru')[0]?.command;
  expect(commandsFor(all, 7, 'ru')).toEqual([]);
  // Adds one entry at a time, from the widest scope to the narrowest. Each entry takes precedence over the earlier
  // entries.
  const order = [
    'default|',
    'default|ru',
    'all_private_chats|',
    'all_private_chats|ru',
    'chat:7|',
    'chat:7|ru',
  ];
  for (const [i, key] of order.entries()) {
    all[key] = one(`c${i}`);
    expect(shown()).toBe(`c${i}`);
  }
  expect(commandsFor(all, 7, null)[0]?.command).toBe('c4');
  expect(commandsFor(all, 8, 'kk')[0]?.command).toBe('c2');
  expect(commandsFor({ 'chat:8|': one('a'), 'all_group_chats|': one('b') }, 7, 'ru')).toEqual([]);
});
