/** Lists every parser and pattern that reads untrusted bytes, each with its most expensive input. */

import { shownAnswer } from '../../src/delivery/outbound/redact.js';
import { readTarget } from '../../src/delivery/outbound/target.js';
import { readCertificate } from '../../src/delivery/outbound/trust.js';
import { readRetryAfter } from '../../src/delivery/schedule.js';
import { setWriteAccess } from '../../src/endpoints/bots/write_access.js';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { createFileIds } from '../../src/files/file_id.js';
import { fileAtPath } from '../../src/files/file_path.js';
import { asksToClose, isUpload } from '../../src/http/head.js';
import { createVerifier } from '../../src/identity/verify.js';
import { limits } from '../../src/limits.js';
import { readCommand } from '../../src/manage/commands.js';
import { setMyCommands } from '../../src/methods/commands/setMyCommands.js';
import { cardOf } from '../../src/previews/card.js';
import { readPage } from '../../src/previews/charset.js';
import { checkCommands } from '../../src/rules/commands.js';
import { reactionEmoji } from '../../src/rules/emoji.js';
import { linkEntity } from '../../src/rules/entities/entity.js';
import { formatText } from '../../src/rules/entities/format.js';
import { matchesTag } from '../../src/rules/entity_tags.js';
import { parseJson } from '../../src/rules/json.js';
import { checkKeyboard } from '../../src/rules/keyboard.js';
import { parseRange } from '../../src/rules/ranges.js';
import { isBlank } from '../../src/rules/text.js';
import { findTokens, maskTokens, parseToken } from '../../src/rules/token.js';
import { validUsername } from '../../src/rules/usernames.js';
import { createClientAddress } from '../../src/server/client_address.js';
import { parametersText } from '../../src/server/idempotency.js';
import { parseWith } from '../../src/server/method.js';
import { parseParams, parseQuery } from '../../src/server/params.js';
import type { ApiRequest } from '../../src/server/request.js';
import { createRouter } from '../../src/server/router.js';
import { parseCursor } from '../../src/store/core/cursors.js';
import { marked_length_max, readMarks } from '../../src/web/client/model/marks.js';
import { chosenEncoding } from '../../src/web/pages.js';
import { chosenLanguage } from '../../src/web/post_words.js';
import { leakedTokens } from '../../src/wire/leak_results.js';
import { allowedUpdates, chatId, entities, messageIds, replyMarkup } from '../../src/wire/schema.js';

export interface Attack {
  readonly parser: string;
  readonly input: string;
  /** The size of the largest input that the service passes to the parser, in bytes. */
  readonly bytesMax: number;
  /** The maximum CPU time per byte on a busy machine. On an idle machine, the time is several times shorter. */
  readonly nsPerByteMax: number;
  /** Returns a function that runs the parser on an input of `bytes` bytes. The parser may return a result or refuse. */
  readonly on: (bytes: number) => () => unknown;
}

const { head_bytes_max: headMax, body_bytes_max: bodyMax, markup_length_max: markupMax } = limits;
const form = 'application/x-www-form-urlencoded';
const json = 'application/json';
const partHeadMax = 16_000;
const none = Buffer.alloc(0);

const request = (contentType: string, body: string | Buffer, query = '') =>
  ({ contentType, body: Buffer.from(body as string), query }) as ApiRequest;

function filled(bytes: number, unit: string, before = '', after = ''): string {
  const count = Math.floor((bytes - Buffer.byteLength(before + after)) / Buffer.byteLength(unit));
  return before + unit.repeat(count) + after;
}

const nested = (bytes: number, open: string, close: string, between = '') => {
  const count = Math.floor((bytes - between.length) / (open.length + close.length));
  return open.repeat(count) + between + close.repeat(count);
};

const find = createRouter(endpoints);
const ids = createFileIds('pepper');
const addressOf = createClientAddress(['10.0.0.0/8']);
const verify = createVerifier({
  keys: () => Promise.reject(new TypeError('no key')),
  issuer: 'https://id.example',
  audience: 'petrel',
  subjectClaim: 'sub',
});

type Row = readonly [
  parser: string,
  input: string,
  bytesMax: number,
  nsPerByteMax: number,
  on: (bytes: number) => () => unknown,
];

/** Returns one row for each input of a text parser. The input repeats `unit` until it has the maximum size. */
const texts = (
  parser: string,
  bytesMax: number,
  nsPerByteMax: number,
  run: (text: string) => unknown,
  ...inputs: ReadonlyArray<readonly [unit: string, before?: string, after?: string]>
): Row[] =>
  inputs.map(([unit, before, after]) => [
    parser,
    JSON.stringify([before, unit, after].filter((part) => part !== undefined)),
    bytesMax,
    nsPerByteMax,
    (bytes) => {
      const text = filled(bytes, unit, before, after);
      return () => run(text);
    },
  ]);

const bodies = (
  parser: string,
  bytesMax: number,
  nsPerByteMax: number,
  contentType: string,
  ...inputs: ReadonlyArray<readonly [unit: string, before?: string, after?: string]>
): Row[] =>
  inputs.map(([unit, before, after]) => [
    parser,
    JSON.stringify([before, unit, after].filter((part) => part !== undefined)).slice(0, 80),
    bytesMax,
    nsPerByteMax,
    (bytes) => {
      const given = request(contentType, filled(bytes, unit, before, after));
      return () => parseParams(given);
    },
  ]);

const heads: Row[] = [
  ...texts(
    'Range',
    headMax,
    50,
    (t) => parseRange(t, 1e9),
    [' ', 'bytes=', 'x'],
    [' ', 'bytes', '=-'],
    ['1', 'bytes='],
  ),
  ...texts('Connection', headMax, 100, asksToClose, [','], [' ', 'close', 'x'], ['close ']),
  ...texts('Content-Type', headMax, 50, isUpload, [' '], [' ', 'multipart/form-data', 'x']),
  ...texts(
    'Content-Type, boundary',
    headMax,
    100,
    (t) => parseParams(request(t, 'x')),
    ['; ', 'multipart/form-data'],
    [';boundary="', 'multipart/form-data'],
  ),
  ...texts(
    'Accept-Encoding',
    headMax,
    400,
    (t) => chosenEncoding(t, ['br', 'gzip']),
    [' ', 'a', 'x'],
    [';'],
    ['a,'],
    ['q=0.0;', ';'],
  ),
  ...texts('Accept-Language', headMax, 400, chosenLanguage, [' ', 'a', '-'], [';'], ['a,'], ['q=0.0;', ';']),
  ...texts('If-None-Match', headMax, 400, (t) => matchesTag(t, '"tag"'), [','], [' ', 'a', 'x'], ['W/']),
  ...texts(
    'X-Forwarded-For',
    headMax,
    1_000,
    (t) => addressOf({ remoteAddress: '10.0.0.1', forwardedFor: t }),
    ['10.0.0.1,'],
    ['1:'],
    ['a::'],
    ['1.'],
    ['['],
  ),
  ...texts('Last-Event-ID', headMax, 1_000, (t) => parseCursor(t, 64), [','], ['1.a,'], ['z']),
  ...texts('token', headMax, 20, parseToken, ['1'], ['A', '1:'], [':']),
  ...texts(
    'path',
    headMax,
    200,
    (t) => find('GET', t),
    ['/'],
    ['%', '/api/posts/'],
    ['%41', '/api/posts/', '/reactions'],
  ),
  ...texts(
    'path of a file',
    headMax,
    50,
    (t) => fileAtPath(ids, t),
    ['a'],
    ['-', 'photos/'],
    ['a.', 'photos/'],
  ),
  ...texts(
    'JWT',
    limits.jwt_length_max,
    2_000,
    verify,
    ['a', 'eyJhbGciOiJSUzI1NiJ9.', '.a'],
    ['.'],
    ['e', '', '.e.e'],
  ),
];

const query = (text: string) => parseQuery(request('', none, text));
const params: Row[] = [
  ...texts('query', headMax, 100, query, ['%&'], ['%'], ['&'], ['%41', 'a='], ['a=b&'], ['=']),
  ...bodies(
    'form',
    bodyMax,
    100,
    form,
    ['%&'],
    ['%'],
    ['&'],
    ['%ff'],
    ['%d0%bf', 'a='],
    ['+', 'a='],
    ['='],
    ['a&'],
    ['%2'],
  ),
  ...bodies(
    'JSON',
    bodyMax,
    150,
    json,
    [' '],
    ['[', '{"a":'],
    ['1,', '{"a":[', '1]}'],
    ['{},', '{"a":[', '1]}'],
    ['"a":1,', '{', '"a":1}'],
  ),
  ...bodies(
    'JSON text',
    bodyMax,
    150,
    json,
    ['\\"', '{"a":"', '"}'],
    ['\\u0041', '{"a":"', '"}'],
    ['[', '{"a":"', '"}'],
    ['1', '{"a":', '}'],
    ['9', '{"a":1e', '}'],
  ),
  ...texts('JSON in a parameter', bodyMax, 150, parseJson, ['['], ['"a",', '[', '1]'], ['\\\\', '["', '"]']),
  [
    'JSON, maximum number of names',
    'names with escapes',
    bodyMax,
    150,
    (bytes) => {
      const count = Math.min(10_900, Math.floor(bytes / 95));
      const names = Array.from({ length: count }, (_, i) => `"${String(i).padEnd(80, 'k')}":"\\u0041"`);
      const given = request(json, `{"a":{${names.join(',')}}}`);
      return () => parseParams(given);
    },
  ],
  ...texts(
    'idempotent parameters',
    bodyMax,
    300,
    (t) => parametersText(request(json, t)),
    ['attach://', '{"a":"', '"}'],
    ['\\"', '{"a":"', '"}'],
  ),
];

const multipart = 'multipart/form-data; boundary=b';
const dashes = `${'-'.repeat(198)}x`;
const part = '--b\r\nContent-Disposition: form-data; name=a';
const uploads: Row[] = [
  ...bodies(
    'multipart, head of a part',
    partHeadMax,
    2_000,
    multipart,
    ...([' ', ';', '; ', '; a=', ';a', '\\', "'", '/', 'a'] as const).flatMap((unit) => [
      [unit, part, '\r\n\r\nx\r\n--b--'] as const,
      [unit, `${part}; filename="`, '\r\n\r\nx\r\n--b--'] as const,
      [unit, `${part}; filename*=utf-8'`, '\r\n\r\nx\r\n--b--'] as const,
      [unit, '--b\r\nContent-Disposition: form-data', '\r\n\r\nx\r\n--b--'] as const,
    ]),
  ),
  ...bodies(
    'multipart, delimiters',
    8 * bodyMax,
    50,
    multipart,
    ['\r\n--b', `${part}; filename=f\r\n\r\n`, '\r\n--b--'],
    ['\r\n--b ', `${part}; filename=f\r\n\r\n`, '\r\n--b--'],
    ['\r', `${part}; filename=f\r\n\r\n`, '\r\n--b--'],
  ),
  ...bodies('multipart, long boundary', 8 * bodyMax, 50, `multipart/form-data; boundary=${dashes}`, [
    '-',
    `--${dashes}\r\nContent-Disposition: form-data; name=a; filename=f\r\n\r\n`,
    `\r\n--${dashes}--`,
  ]),
];

const html = (text: string) => formatText(text, 'HTML');
const markdown = (text: string) => formatText(text, 'Markdown');
const markdownV2 = (text: string) => formatText(text, 'MarkdownV2');
const blanksLater = (count: number, unit: string) => (bytes: number) =>
  filled(bytes, ' ', unit.repeat(Math.floor((count * bytes) / markupMax)), 'x');

/** Returns rows for markup of two parts. The parser reads the first part again for each item of the second part. */
const built = (
  parser: string,
  run: (text: string) => unknown,
  ...inputs: ReadonlyArray<readonly [string, (bytes: number) => string]>
): Row[] =>
  inputs.map(([input, make]) => [
    parser,
    input,
    markupMax,
    1_500,
    (bytes) => {
      const text = make(bytes);
      return () => run(text);
    },
  ]);

const markup: Row[] = [
  ...texts(
    'HTML',
    markupMax,
    1_500,
    html,
    ['<a>x</a>'],
    ['</a>y'],
    ['<b> </b>'],
    ['<'],
    ['</'],
    ['<b>'],
    ['&#1'],
    ['&#9', '&#'],
    ['a', '&'],
    [' ', '<a ', '>x</a>'],
    ['a=', '<a ', '>x</a>'],
    ['a ', '<a ', '>x</a>'],
    ['<code class="language-a">x</code>'],
  ),
  ...built(
    'HTML',
    html,
    ['links in links', (bytes) => nested(bytes, '<a>', '</a>', 'x')],
    ['links in links that grow', (bytes) => nested(bytes, '<a>', 'y</a>')],
    ['links around blanks', (bytes) => nested(bytes / 2, '<a>', '</a>', ' '.repeat(bytes / 2))],
    ['blanks, each in bold, then blanks', blanksLater(1_000, '<b> </b>')],
    ['styles in styles', (bytes) => nested(bytes, '<b><i>', '</></>', 'x')],
  ),
  ...texts(
    'MarkdownV2',
    markupMax,
    1_500,
    markdownV2,
    ['[a]'],
    ['\\'],
    ['**'],
    ['*a*'],
    ['[a](b)'],
    ['||a||'],
    ['>a\n'],
    ['```a```'],
    ['`'],
    ['\\a', '[a]('],
  ),
  ...built(
    'MarkdownV2',
    markdownV2,
    ['links in links', (bytes) => nested(bytes, '[', ']', 'x')],
    ['links in links that grow', (bytes) => nested(bytes, '[', 'y]')],
    ['blanks, each in bold, then blanks', blanksLater(1_000, '* *')],
  ),
  ...texts(
    'Markdown',
    markupMax,
    1_500,
    markdown,
    ['[a]'],
    ['[a](b)'],
    ['\\'],
    ['*a*'],
    ['```a```'],
    ['['],
    ['_'],
    ['`'],
  ),
  ...texts(
    'a text without markup',
    2 * limits.text_length_max,
    3_000,
    (t) => formatText(t),
    ['/'],
    ['a.'],
    ['a.1'],
    ['a@a.'],
    ['@a'],
    ['#1'],
    ['://'],
    ['http://a.'],
    ['a', 'http://a.b/', '/'],
    ['(', 'http://a.b/', ')'],
    [')', 'http://a.b/'],
    ['-', 'a.a'],
    ['1', '#'],
  ),
  ...texts(
    'a blank text',
    markupMax,
    100,
    (t) =>
      formatText(t, '', [
        { type: 'bold', offset: 0, length: 1 },
        { type: 'code', offset: 1, length: 1 },
      ]),
    [' '],
    ['\n'],
  ),
  ...texts(
    'an address',
    2_048,
    500,
    (t) => linkEntity(0, 1, t),
    ['a.', 'http://'],
    ['a@', 'http://'],
    ['[', 'http://'],
    [':', 'tg://user?id='],
    ['1', 'tg://user?id='],
    ['a'],
    ['.:'],
    [' ', 'tg://', 'x'],
  ),
  ...texts('blank text', bodyMax, 200, isBlank, ['\u200b'], [' '], ['\ufe0f'], [' ', '', 'x']),
];

const values: Row[] = [
  ...texts('username', bodyMax, 20, validUsername, ['a'], ['_']),
  ...texts('chat_id', bodyMax, 50, (t) => parseWith(chatId, t), ['a', '@', '-'], ['1']),
  ...texts(
    'entities',
    bodyMax,
    400,
    (t) => parseWith(entities, t),
    ['{"type":1},', '[', '1]'],
    ['1,', '[', '1]'],
  ),
  ...texts(
    'reply_markup',
    bodyMax,
    400,
    (t) => parseWith(replyMarkup, t),
    ['{"text":1},', '{"inline_keyboard":[[', '1]]}'],
    ['[],', '{"inline_keyboard":[', '1]}'],
  ),
  ...texts('message_ids', bodyMax, 400, (t) => parseWith(messageIds, t), ['"a",', '[', '1]']),
  ...texts('allowed_updates', bodyMax, 400, (t) => parseWith(allowedUpdates, t), ['1,', '[', '1]']),
  ...texts('commands', bodyMax, 400, (t) => parseWith(setMyCommands.params as never, { commands: t }), [
    '{"command":1},',
    '[',
    '1]',
  ]),
  ...texts(
    'names of writers',
    bodyMax,
    400,
    (t) => parseWith(setWriteAccess.params as never, { bot_id: 1, policy: 'selected', usernames: t }),
    ['"- ",', '[', '1]'],
  ),
  ...texts(
    'the text of a command',
    bodyMax,
    100,
    (t) => checkCommands([{ command: t, description: t }]),
    ['a'],
    [' '],
  ),
  ...texts(
    'a command to the management bot',
    limits.text_length_max,
    100,
    (t) => readCommand(t, 'petrelbot'),
    ['a', '/'],
    ['a', '/a@'],
  ),
  ...texts(
    'address of a button',
    limits.keyboard_bytes_max - 1,
    100,
    (t) => checkKeyboard([[{ text: 'a', url: t }]]),
    ['a', 'http://', ' '],
    [' ', 'http://', 'x'],
    ['a.', '', ' '],
    ['-', 'a.', ' '],
  ),
  ...texts('reaction', bodyMax, 50, reactionEmoji, ['\ufe0f'], ['👩\u200d']),
  ...texts('file_id', bodyMax, 50, (t) => ids.fileOf(t), ['A'], ['=']),
  ...texts(
    'address of a webhook',
    bodyMax,
    100,
    readTarget,
    ['a.', 'https://'],
    [' ', 'https://', 'x'],
    ['%', 'https://'],
  ),
  ...texts(
    'certificate',
    limits.webhook_certificate_bytes_max,
    100,
    (t) => readCertificate(Buffer.from(t)),
    ['-----BEGIN CERTIFICATE-----'],
    ['-----BEGIN CERTIFICATE-----a-----END CERTIFICATE-----'],
    ['-'],
    ['a', '-----BEGIN CERTIFICATE-----'],
  ),
];

/** The parsers that read texts from webhook receivers and other external services. */
const others: Row[] = [
  ...texts(
    'Retry-After',
    limits.webhook_answer_head_bytes_max,
    50,
    (t) => readRetryAfter(t, 0),
    [' ', '1', 'x'],
    ['1'],
    ['Mon, '],
  ),
  ...texts(
    'answer of a webhook, shown to the owner',
    5_120,
    2_000,
    (t) => shownAnswer(Buffer.from(t), ['https://a.example/hook/secret', 'secretsecret']),
    ['1'],
    ['1:A'],
    ['whsec_'],
    ['secretsecre'],
  ),
  ...texts(
    'page of a link preview',
    limits.preview_page_bytes_max,
    1_000,
    (t) => cardOf('https://a.example/', readPage(Buffer.from(t), 'text/html')),
    ['<'],
    ['<a>'],
    ['<a'],
    ['<a a'],
    ['<meta content='],
    ['<meta property="og:title" content="a">'],
    ['a', '<meta property="og:title" content="'],
    ['&amp;', '<title>'],
    ['&#1;', '<title>a'],
    ['&', '<title>'],
    ['</', '<title>'],
    ['</titl', '<title>'],
    ['--', '<!--'],
    ['-->', '<!--'],
    [' ', '<title>'],
    [' ', '<title>a', 'a</title>'],
    ['1:A', '<title>'],
    ['<![CDATA['],
    ['<?'],
    ['<script>'],
    ['charset', '<meta http-equiv=content-type content="'],
  ),
  ...texts(
    'report of leaked tokens',
    limits.leak_body_bytes_max,
    300,
    (t) => leakedTokens.safeParse(JSON.parse(t)),
    ['1,', '[', '1]'],
    ['{"token":1},', '[', '1]'],
  ),
  ...texts(
    'tokens in a text',
    headMax,
    2_000,
    findTokens,
    ['1'],
    ['1:A'],
    ['1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'],
  ),
  ...texts(
    'tokens in a line of the log',
    headMax,
    100,
    maskTokens,
    ['1'],
    ['1:A'],
    ['1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'],
  ),
];

/**
 * The formatting marks in the message field of the web application. The application parses these marks after each key
 * press, so a slow parser would block typing.
 */
const marks: Row[] = [
  ...texts(
    'marks',
    marked_length_max,
    10_000,
    readMarks,
    ['`'],
    ['{='],
    ['_}'],
    ['](<a'],
    ['{**a'],
    ['> a\n'],
  ),
  ...(
    [
      ['`', '<}'],
      ['[', '**}'],
      ['**[', '_}'],
      ['{>>', '<}'],
    ] as const
  ).map(
    ([open, close]): Row => [
      'marks',
      `${open} and ${close}`,
      marked_length_max,
      10_000,
      (bytes) => {
        const text = nested(bytes, open, close);
        return () => readMarks(text);
      },
    ],
  ),
];

export const attacks: readonly Attack[] = [
  ...marks,
  ...heads,
  ...params,
  ...uploads,
  ...markup,
  ...values,
  ...others,
].map(([parser, input, bytesMax, nsPerByteMax, on]) => ({ parser, input, bytesMax, nsPerByteMax, on }));
