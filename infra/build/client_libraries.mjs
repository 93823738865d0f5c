/** Lists the client libraries with which the tests run a bot, and generates the documents' tables about the Bot API. */
import { existsSync, readFileSync } from 'node:fs';
import { table } from './markdown_tables.mjs';

const installed = (path) => readFileSync(new URL(`../../node_modules/${path}`, import.meta.url), 'utf8');

/** The folders of the npm libraries in `node_modules`. One library is installed in two major versions. */
export const npmLibraries = [
  'grammy',
  'telegraf',
  'node-telegram-bot-api',
  'node-telegram-bot-api-v1',
  'gramio',
  'puregram',
  'typescript-telegram-bot-api',
  'telebot',
];

/**
 * Libraries for languages other than JavaScript, from Debian 12 packages. A library counts as installed if the file
 * with the path `source` contains the text `contains`.
 */
export const debianLibraries = {
  'python-telegram-bot': {
    language: 'Python',
    version: '13.15',
    package: 'python3-python-telegram-bot',
    program: '/usr/bin/python3',
    source: '/usr/lib/python3/dist-packages/telegram/version.py',
    contains: "__version__ = '13.",
  },
  'telebot.v3': {
    language: 'Go',
    version: '3.1.2',
    package: 'golang-gopkg-telebot.v3-dev',
    program: '/usr/bin/go',
    source: '/usr/share/gocode/src/gopkg.in/telebot.v3/bot.go',
    contains: 'package telebot',
  },
};

/** Returns whether a library and the program that runs it are installed. Prints one line if they are not. */
export function hasDebianLibrary(name, say) {
  const { version, package: wanted, program, source, contains } = debianLibraries[name];
  const there = existsSync(program) && existsSync(source) && readFileSync(source, 'utf8').includes(contains);
  if (!there) say(`Skipped: a bot on ${name} ${version}, the Debian package ${wanted} was not found`);
  return there;
}

const code = (text) => `\`${text}\``;

/** The limitations of old libraries, as the table of libraries shows them. */
const notes = {
  'python-telegram-bot': 'its webhook server does not check the secret token',
  telebot: 'has no methods for polls, so the bot calls these methods by name',
};

export function librariesTable() {
  const fromNpm = npmLibraries.map((folder) => {
    const { name, version } = JSON.parse(installed(`${folder}/package.json`));
    return [code(name), version, 'JavaScript', notes[folder] ?? ''];
  });
  const fromDebian = Object.entries(debianLibraries).map(([name, { version, language }]) => [
    code(name),
    version,
    language,
    notes[name] ?? '',
  ]);
  return table(['library', 'version', 'language', 'limits of the library'], [...fromNpm, ...fromDebian]);
}

const methodsFile = () => installed('@gramio/types/out/methods.d.ts');

/**
 * Returns the names of the Bot API's methods, sorted.
 * @returns {string[]}
 */
export const botApiMethods = () =>
  [...methodsFile().matchAll(/^ {4}(\w+): CallAPI/gm)].map((match) => match[1] ?? '').sort();

/** Makes the table of Bot API methods. `names` are the methods that Petrel has. */
export function coverageTable(names) {
  const version = /Based on Bot API v([\d.]+)/.exec(methodsFile())?.[1];
  const theirs = botApiMethods();
  const row = (title, found) => [title, String(found.length), found.map(code).join(', ')];
  return table(
    ['methods', 'number', 'names'],
    [
      [
        `in Petrel and in Bot API ${version}`,
        String(theirs.filter((each) => names.includes(each)).length),
        'see above',
      ],
      row(
        `only in Bot API ${version}: 404`,
        theirs.filter((name) => !names.includes(name)),
      ),
      row('only in Petrel', names.filter((name) => !theirs.includes(name)).sort()),
    ],
  );
}
