import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/errors.js';
import { limits } from '../../../src/limits.js';
import { formatText } from '../../../src/rules/entities/format.js';
import { processorMs } from '../../support/times.js';

/** Describes entities in a short notation: `type offset length extra`. */
function brief(source: string, mode: string) {
  const { text, entities } = formatText(source, mode);
  return [
    text,
    ...entities.map((e) =>
      [e.type, e.offset, e.length, e.url ?? e.user?.id ?? e.language ?? e.custom_emoji_id]
        .filter((v) => v !== undefined)
        .join(' '),
    ),
  ];
}

function refusal(source: string, mode: string): string {
  try {
    formatText(source, mode);
  } catch (error) {
    if (error instanceof ApiError) return error.message.replace("Bad Request: can't parse entities: ", '');
    throw error;
  }
  return 'no refusal';
}

type Case = [rule: string, source: string, ...expected: string[]];
type Refusal = [rule: string, source: string, reason: string];

describe('HTML', () => {
  const cases: Case[] = [
    ['plain text', 'a', 'a'],
    ['b', '<b>a</b>', 'a', 'bold 0 1'],
    ['strong', '<strong>a</strong>', 'a', 'bold 0 1'],
    ['i', '<i>a</i>', 'a', 'italic 0 1'],
    ['em', '<em>a</em>', 'a', 'italic 0 1'],
    ['u', '<u>a</u>', 'a', 'underline 0 1'],
    ['ins', '<ins>a</ins>', 'a', 'underline 0 1'],
    ['s', '<s>a</s>', 'a', 'strikethrough 0 1'],
    ['strike', '<strike>a</strike>', 'a', 'strikethrough 0 1'],
    ['del', '<del>a</del>', 'a', 'strikethrough 0 1'],
    ['tg-spoiler', '<tg-spoiler>a</tg-spoiler>', 'a', 'spoiler 0 1'],
    ['span of class tg-spoiler', '<span class="tg-spoiler">a</span>', 'a', 'spoiler 0 1'],
    ['tags ignore case', '<B>a</b >', 'a', 'bold 0 1'],
    ['an end tag without a name', '<b>a</>', 'a', 'bold 0 1'],
    ['link', '<a href="https://e.org/x?y=1&amp;z">a</a>', 'a', 'text_link 0 1 https://e.org/x?y=1&z'],
    ['link in single quotes', "<a href='http://e.org/'>a</a>", 'a', 'text_link 0 1 http://e.org/'],
    ['link without quotes', '<a href=e.org>a</a>', 'a', 'text_link 0 1 http://e.org/'],
    [
      'link whose text is the address',
      '<a>https://e.org</a>',
      'https://e.org',
      'text_link 0 13 https://e.org/',
    ],
    ['host in lower case', '<a href="HTTPS://E.org/X">a</a>', 'a', 'text_link 0 1 https://e.org/X'],
    ['port', '<a href="e.org:8080/x">a</a>', 'a', 'text_link 0 1 http://e.org:8080/x'],
    ['query without path', '<a href="e.org?x">a</a>', 'a', 'text_link 0 1 http://e.org/?x'],
    ['application link', '<a href="tg://resolve?domain=x">a</a>', 'a', 'text_link 0 1 tg://resolve?domain=x'],
    ['script link is dropped', '<a href="javascript:alert(1)">a</a>', 'a'],
    ['script link with slashes is dropped', '<a href="javascript://e.org/%0Aalert(1)">a</a>', 'a'],
    ['data link is dropped', '<a href="data:text/html,x">a</a>', 'a'],
    ['link with user information is dropped', '<a href="https://e.org@evil.org">a</a>', 'a'],
    ['link without a host is dropped', '<a href="x">a</a>', 'a'],
    ['user link', '<a href="tg://user?id=42">a</a>', 'a', 'text_mention 0 1 42'],
    [
      'user link with an id that is too large',
      '<a href="tg://user?id=10000000000000">a</a>',
      'a',
      'text_link 0 1 tg://user?id=10000000000000',
    ],
    ['custom emoji', '<tg-emoji emoji-id="5368">👍</tg-emoji>', '👍', 'custom_emoji 0 2 5368'],
    ['code', '<code>a</code>', 'a', 'code 0 1'],
    ['code with a class but no pre', '<code class="language-c">a</code>', 'a', 'code 0 1'],
    ['pre', '<pre>a\n  b</pre>', 'a\n  b', 'pre 0 5'],
    ['pre with a language', '<pre><code class="language-c++">a</code></pre>', 'a', 'pre 0 1 c++'],
    ['code around pre', '<code class="language-c"><pre>a</pre></code>', 'a', 'pre 0 1 c'],
    ['code for a part of pre', '<pre>a<code class="language-c">b</code></pre>', 'ab', 'pre 0 2'],
    ['quote', '<blockquote>a</blockquote>', 'a', 'blockquote 0 1'],
    ['expandable quote', '<blockquote expandable>a</blockquote>', 'a', 'expandable_blockquote 0 1'],
    ['quote in quote', '<blockquote>a<blockquote>b</blockquote></blockquote>', 'ab', 'blockquote 0 2'],
    ['named references', '&lt;&gt;&amp;&quot;', '<>&"'],
    ['numeric references', '&#65;&#x42;&#128077;', 'AB👍'],
    ['references without semicolon', '&lt &#65', '< A'],
    ['unknown reference', '&nbsp; & &; a&b', '&nbsp; & &; a&b'],
    ['references to characters that cannot be stored', '&#0;&#xD800;&#1114112;x', '&#0;&#xD800;&#1114112;x'],
    ['a lone >', 'a > b', 'a > b'],
    ['nesting', '<b>a<i>b</i></b>', 'ab', 'bold 0 2', 'italic 1 1'],
    ['same style nested', '<b>a<b>b</b></b>', 'ab', 'bold 0 2'],
    ['same style adjacent', '<b>a</b><b>b</b>', 'ab', 'bold 0 2'],
    ['same style apart', '<b>a</b>x<b>b</b>', 'axb', 'bold 0 1', 'bold 2 1'],
    ['empty entity', 'x<b></b>', 'x'],
    ['entity of white space', 'x<b> </b>y', 'x y'],
    ['style around code', '<b>a<code>b</code>c</b>', 'abc', 'bold 0 1', 'code 1 1', 'bold 2 1'],
    ['style inside code', '<code>a<b>b</b></code>', 'ab', 'code 0 2'],
    ['link in bold', '<b><a href="e.org">a</a>b</b>', 'ab', 'bold 0 2', 'text_link 0 1 http://e.org/'],
    ['UTF-16 offsets', '👍<b>👍</b>', '👍👍', 'bold 2 2'],
    ['outer white space', ' \n<b>a </b>\n', 'a', 'bold 0 1'],
    ['code of white space', '<pre>  </pre>a', '  a', 'pre 0 2'],
    ['white space at the beginning of an entity', ' <b> a</b>', ' a', 'bold 0 2'],
  ];
  it.each(cases)('HTML is parsed: %s', (_, source, ...expected) =>
    expect(brief(source, 'HTML')).toEqual(expected),
  );

  const refusals: Refusal[] = [
    ['unknown tag, offset in bytes', 'é<br>', 'Unsupported start tag "br" at byte offset 2'],
    ['a lone <', '1 < 2', 'Unsupported start tag "" at byte offset 2'],
    ['start tag without end', 'a<b', 'Unclosed start tag at byte offset 1'],
    ['attributes without end', '<a href="x', 'Unclosed start tag "a" at byte offset 0'],
    ['attributes without >', '<a href="x" ', 'Unclosed start tag "a" at byte offset 0'],
    ['no attribute name', '<a ="x">', 'Empty attribute name in the tag "a" at byte offset 0'],
    ['bad unquoted value', '<a href=x/y>a</a>', 'Unexpected end of name token at byte offset 9'],
    ['span without its class', '<span>a</span>', 'Tag "span" must have class "tg-spoiler" at byte offset 0'],
    [
      'emoji without number',
      '<tg-emoji>a</tg-emoji>',
      'Invalid custom emoji identifier specified at byte offset 0',
    ],
    ['end without start', 'a</b>', 'Unexpected end tag at byte offset 1'],
    ['end tag without >', '<b>a</b', 'Unclosed end tag at byte offset 4'],
    ['crossed tags', '<b>a<i>b</b>', 'Unmatched end tag at byte offset 8, expected "</i>", found "</b>"'],
    ['no end tag', '<b>a', `Can't find end tag corresponding to start tag "b"`],
  ];
  it.each(refusals)('HTML is refused: %s', (_, source, reason) =>
    expect(refusal(source, 'HTML')).toBe(reason),
  );
});

describe('MarkdownV2', () => {
  const cases: Case[] = [
    ['bold', '*a*', 'a', 'bold 0 1'],
    ['italic', '_a_', 'a', 'italic 0 1'],
    ['underline', '__a__', 'a', 'underline 0 1'],
    ['strikethrough', '~a~', 'a', 'strikethrough 0 1'],
    ['spoiler', '||a||', 'a', 'spoiler 0 1'],
    ['code', '`a*_[`', 'a*_[', 'code 0 4'],
    ['escapes in code', '`a\\`\\\\`', 'a`\\', 'code 0 3'],
    ['pre', '```\na\nb\n```', 'a\nb', 'pre 0 3'],
    ['pre on one line', '```a b```', ' b', 'pre 0 2 a'],
    ['pre of one word', '```a```', 'a', 'pre 0 1'],
    ['pre with a language', '```py\na\n```\nx', 'a\n\nx', 'pre 0 2 py'],
    ['single backticks in pre', '```\na\\`b```', 'a`b', 'pre 0 3'],
    ['link', '[a](https://e.org/)', 'a', 'text_link 0 1 https://e.org/'],
    ['escapes in an address', '[a](https://e.org/x\\)y\\\\z)', 'a', 'text_link 0 1 https://e.org/x)y\\z'],
    ['link without an address', '[e\\.org]', 'e.org', 'text_link 0 5 http://e.org/'],
    ['user link', '[a](tg://user?id=42)', 'a', 'text_mention 0 1 42'],
    ['script link is dropped', '[a](javascript:x)', 'a'],
    ['custom emoji', '![👍](tg://emoji?id=5368)', '👍', 'custom_emoji 0 2 5368'],
    [
      'escapes of every reserved character',
      '\\_\\*\\[\\]\\(\\)\\~\\`\\>\\#\\+\\-\\=\\|\\{\\}\\.\\!\\\\',
      '_*[]()~`>#+-=|{}.!\\',
    ],
    ['a backslash before other characters', 'a\\é\\', 'a\\é\\'],
    [
      'the nesting in the documentation',
      '*bold _italic ~struck~ __under___ bold*',
      'bold italic struck under bold',
      'bold 0 29',
      'italic 5 19',
      'strikethrough 12 6',
      'underline 19 5',
    ],
    ['__ inside _ is underline', '_a__b__c_', 'abc', 'italic 0 3', 'underline 1 1'],
    ['italic and underline separated by an empty bold', '___a_**__', 'a', 'italic 0 1', 'underline 0 1'],
    ['quote', '>a\n>b', 'a\nb', 'blockquote 0 3'],
    ['quote in the middle', 'x\n>a\n>b\ny', 'x\na\nb\ny', 'blockquote 2 4'],
    [
      'two quotes, the second expandable',
      '>a\n**>b\n>c||\nx',
      'a\nb\nc\nx',
      'blockquote 0 2',
      'expandable_blockquote 2 4',
    ],
    ['expandable quote at the end', '>a||', 'a', 'expandable_blockquote 0 1'],
    ['spoiler at the end of a quote', '>||a||', 'a', 'blockquote 0 1', 'spoiler 0 1'],
    [
      'spoiler at the end of an expandable quote',
      '>||a||||',
      'a',
      'expandable_blockquote 0 1',
      'spoiler 0 1',
    ],
    ['style over two lines of a quote', '>*a\n>b*', 'a\nb', 'blockquote 0 3', 'bold 0 3'],
    ['> in code', '`a\n>b`', 'a\n>b', 'code 0 4'],
    ['empty entities', 'a**b', 'ab'],
    ['UTF-16 offsets', '👍*👍*', '👍👍', 'bold 2 2'],
    ['outer white space', '\n *a\n*', 'a', 'bold 0 1'],
    ['adjacent styles', '*a**b*', 'ab', 'bold 0 2'],
  ];
  it.each(cases)('MarkdownV2 is parsed: %s', (_, source, ...expected) =>
    expect(brief(source, 'MarkdownV2')).toEqual(expected),
  );

  it.each([...'])}>#+-=|{.!('])('an unescaped %s is refused', (char) => {
    expect(refusal(`a${char}`, 'MarkdownV2')).toBe(
      `Character '${char}' is reserved and must be escaped with the preceding '\\'`,
    );
  });

  const refusals: Refusal[] = [
    ['no end of bold', 'é*a', "Can't find end of Bold entity at byte offset 2"],
    ['no end of italic', '_a', "Can't find end of Italic entity at byte offset 0"],
    ['no end of underline', '__a', "Can't find end of Underline entity at byte offset 0"],
    ['no end of strikethrough', '~a', "Can't find end of Strikethrough entity at byte offset 0"],
    ['no end of spoiler', '||a', "Can't find end of Spoiler entity at byte offset 0"],
    ['no end of code', '`a', "Can't find end of Code entity at byte offset 0"],
    ['no end of pre', '```a``', "Can't find end of Pre entity at byte offset 0"],
    ['no end of pre with a language', '```c\na', "Can't find end of PreCode entity at byte offset 0"],
    ['no end of a link text', '[a', "Can't find end of TextUrl entity at byte offset 0"],
    ['no end of an address', '[a](b', "Can't find end of a URL at byte offset 4"],
    ['address that ends in a backslash', '[a](b\\', "Can't find end of a URL at byte offset 4"],
    ['an emoji without an end', '![a', "Can't find end of CustomEmoji entity at byte offset 0"],
    ['emoji without address', '![a]', 'Custom emoji entity must contain a tg://emoji URL'],
    ['no end of an emoji address', '![a](b', "Can't find end of a custom emoji URL at byte offset 5"],
    [
      'emoji with another address',
      '![a](http://e.org)',
      'Invalid custom emoji identifier specified at byte offset 5',
    ],
    ['style that leaves its quote', '>*a\nb*', "Can't find end of Bold entity at byte offset 1"],
    ['crossed styles', '*a_b*c_', "Can't find end of Italic entity at byte offset 6"],
    ['> inside a line', 'a >b', "Character '>' is reserved and must be escaped with the preceding '\\'"],
    ['> twice', '>>b', "Character '>' is reserved and must be escaped with the preceding '\\'"],
    ['the ambiguity of three underscores', '___a___', "Can't find end of Italic entity at byte offset 6"],
  ];
  it.each(refusals)('MarkdownV2 is refused: %s', (_, source, reason) =>
    expect(refusal(source, 'MarkdownV2')).toBe(reason),
  );
});

describe('Markdown', () => {
  const cases: Case[] = [
    ['bold', '*a*', 'a', 'bold 0 1'],
    ['italic', '_a_', 'a', 'italic 0 1'],
    ['code', '`a*`', 'a*', 'code 0 2'],
    ['pre', '```\na\n```', 'a', 'pre 0 1'],
    ['pre with a language', '```py\na```', 'a', 'pre 0 1 py'],
    ['link', '[a](https://e.org)', 'a', 'text_link 0 1 https://e.org/'],
    ['user link', '[a](tg://user?id=42)', 'a', 'text_mention 0 1 42'],
    ['link without an address', '[e.org]', 'e.org', 'text_link 0 5 http://e.org/'],
    ['link whose address has no end', '[a](e.org', 'a', 'text_link 0 1 http://e.org/'],
    ['escapes outside of entities', '\\_\\*\\`\\[\\x', '_*`[\\x'],
    ['no escapes inside', '_a\\_', 'a\\', 'italic 0 2'],
    ['no nesting', '*a_b*_c_', 'a_bc', 'bold 0 3', 'italic 3 1'],
    ['other characters are plain', 'a.b!c~d~ ||e||', 'a.b!c~d~ ||e||'],
    ['empty entity', '**a', 'a'],
    ['UTF-16 offsets', '👍*👍*', '👍👍', 'bold 2 2'],
  ];
  it.each(cases)('Markdown is parsed: %s', (_, source, ...expected) =>
    expect(brief(source, 'Markdown')).toEqual(expected),
  );

  it.each(['*', '_', '`', '[', '```'])(
    'the mark %s without an end is refused with its byte offset',
    (mark) => {
      expect(refusal(`é${mark}a`, 'Markdown')).toBe("Can't find end of the entity starting at byte offset 2");
    },
  );
});

describe('an unknown parse mode is refused, and the case of a parse mode is ignored', () => {
  it.each(['html', 'HTML', 'Html'])(
    'the parse mode %s is accepted, because upper and lower case are equal',
    (mode) => {
      expect(brief('<b>a</b>', mode)).toEqual(['a', 'bold 0 1']);
    },
  );
  it.each(['', 'none'])("the parse mode '%s' means that there is no markup", (mode) =>
    expect(brief('*a*', mode)).toEqual(['*a*']),
  );
  it.each(['markdownv3', 'toString', 'HTML '])("the parse mode '%s' is refused", (mode) => {
    expect(() => formatText('a', mode)).toThrow('Bad Request: unsupported parse_mode');
  });
});

describe('the number of marks in a text is limited', () => {
  const most = limits.markup_marks_max;
  const tooMany = `Text has more than ${most} marks`;
  it.each([
    ['HTML', '<b>a</b>'],
    ['HTML', '&amp;'],
    ['HTML', '<a href="&#1;&#1;&#1;">a</a>'],
    ['MarkdownV2', '[a]'],
    ['MarkdownV2', '\\*'],
    ['MarkdownV2', '>a\n'],
    ['Markdown', '*a*'],
    ['Markdown', '[a](http://a.b/)'],
  ])('a text with too many marks is refused in %s: %s', (mode, unit) => {
    expect(refusal(unit.repeat(most + 1), mode)).toBe(tooMany);
    expect(refusal('x'.repeat(10 * most), mode)).toBe('no refusal');
  });

  it('a text of the maximum length is accepted even if it consists of escapes', () => {
    const { text } = formatText('\\!'.repeat(limits.text_length_max), 'MarkdownV2');
    expect(text).toBe('!'.repeat(limits.text_length_max));
    expect(formatText('&lt;'.repeat(limits.text_length_max), 'HTML').text).toHaveLength(
      limits.text_length_max,
    );
  });

  it('a text with too many marks is refused before all of it is parsed', () => {
    const source = '*_~'.repeat(limits.markup_length_max / 3);
    const times = Array.from({ length: 10 }, () => processorMs(() => refusal(source, 'MarkdownV2')));
    // Parsing the whole text would take 80 ms.
    expect(Math.min(...times)).toBeLessThan(20);
  });
});
