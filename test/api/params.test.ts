import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ApiError } from '../../src/errors.js';
import { limits } from '../../src/limits.js';
import { parseJson } from '../../src/rules/json.js';
import { type ParsedParams, parseParams } from '../../src/server/params.js';
import type { ApiRequest } from '../../src/server/request.js';

function parse(contentType: string, body: string | Buffer, query = ''): ParsedParams {
  return parseParams({ contentType, body: Buffer.from(body as string), query } as ApiRequest);
}

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof ApiError) return error.kind;
    throw error;
  }
  return 'accepted';
}

const json = 'application/json';
const form = 'application/x-www-form-urlencoded';
const plain = (params: ParsedParams) => ({ ...params.values });

describe('parameters are read from queries and forms', () => {
  test('the last value of a repeated parameter in a query or form is used', () => {
    const text = 'a=1&text=%D0%BF%D1%80+%2B%26&empty=&bare&a=2&&%61b=x=y';
    const expected = { a: '2', text: 'пр +&', empty: '', bare: '', ab: 'x=y' };
    expect(plain(parse('', '', text))).toEqual(expected);
    expect(plain(parse(`${form}; charset=utf-8`, text))).toEqual(expected);
  });

  test('a percent sign that does not begin an escape stays in the value', () => {
    expect(plain(parse('', '', 'a=100%&b=%zz%41&c=%d0%bf%'))).toEqual({ a: '100%', b: '%zzA', c: 'п%' });
  });

  test.each(['a=%ff', 'a=%00', '%00=a', 'a=%ed%a0%80', 'a=%ff%', 'a=\uFFFD', 'a=%c0%80'])(
    'the form %j is refused',
    (query) => {
      expect(refusal(() => parse('', '', query))).toBe('bad_unicode');
    },
  );

  test('a form that is not UTF-8 is refused', () => {
    expect(refusal(() => parse(form, Buffer.from('a=\xff', 'latin1')))).toBe('bad_unicode');
  });

  test('parameters in the body override parameters in the query', () => {
    expect(plain(parse(json, '{"a":1}', 'a=2&b=3'))).toEqual({ a: 1, b: '3' });
    expect(plain(parse(form, 'a=1', 'a=2&b=3'))).toEqual({ a: '1', b: '3' });
  });

  test('parsing a form returns the text that URLSearchParams has encoded', () => {
    const text = fc.string({ unit: 'binary' }).filter((value) => !value.includes('\0'));
    fc.assert(
      fc.property(text, (value) => {
        const { values } = parse(form, new URLSearchParams({ value }).toString());
        expect(values.value).toBe(value);
      }),
    );
  });
});

describe('JSON bodies', () => {
  test('JSON values are returned unchanged', () => {
    const body = { a: 1, b: [true, null, { c: 'д😀' }], ключ: 'x' };
    expect(plain(parse('Application/JSON; charset=utf-8', JSON.stringify(body)))).toEqual(body);
  });

  test.each(['{', '[]', '"a"', 'null', '1', '{"a":1}x', 'a=1'])('the JSON body %j is refused', (body) => {
    expect(refusal(() => parse(json, body))).toBe('bad_json');
  });

  test.each([
    '{"a":"\\ud800"}',
    '{"a":[{"b":"x\\udc00\\ud800"}]}',
    '{"\\ud83d":1}',
    '{"a":"\\u0000"}',
    '{"a":{"b\\u0000":1}}',
  ])('the JSON body %j is refused, because it contains text that is not valid Unicode', (body) => {
    expect(refusal(() => parse(json, body))).toBe('bad_unicode');
  });

  test('JSON may contain an escaped surrogate pair, but not bytes that are not UTF-8', () => {
    expect(plain(parse(json, '{"a":"\\ud83d\\ude00"}'))).toEqual({ a: '😀' });
    expect(refusal(() => parse(json, Buffer.from('{"a":"\xff"}', 'latin1')))).toBe('bad_unicode');
  });

  test('JSON with more than 64 levels of nesting is refused', () => {
    const nested = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
    expect(refusal(() => parse(json, nested(64)))).toBe('accepted');
    expect(refusal(() => parse(json, nested(65)))).toBe('bad_json');
    expect(refusal(() => parse(json, nested(400_000)))).toBe('bad_json');
    expect(refusal(() => parse(json, `{"a":[${'{},'.repeat(200)}{}]}`))).toBe('accepted');
    expect(refusal(() => parseJson('['.repeat(65) + ']'.repeat(65)))).toBe('bad_json');
  });

  test('parameters may have the names of prototype properties', () => {
    const { values } = parse(json, '{"__proto__":{"polluted":1},"constructor":2}', '__proto__=x&toString=y');
    expect(Object.getPrototypeOf(values)).toBeNull();
    expect(Object.keys(values).sort()).toEqual(['__proto__', 'constructor', 'toString']);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(parse('', '', 'a=1').values.hasOwnProperty).toBeUndefined();
  });
});

describe('the number of parameters and values in a call is limited', () => {
  const pairs = (count: number) => Array.from({ length: count }, (_, i) => `a${i}=1`);
  const members = (count: number) => Array.from({ length: count }, (_, i) => `"a${i}":1`);
  test.each([
    ['a query', (n: number) => parse('', '', pairs(n).join('&'))],
    ['a form', (n: number) => parse(form, pairs(n).join('&'))],
    ['a form that repeats a name', (n: number) => parse(form, 'a=1&'.repeat(n))],
    ['JSON', (n: number) => parse(json, `{${members(n).join()}}`)],
  ])('the number of parameters is limited in %s', (_, read) => {
    expect(refusal(() => read(limits.parameters_max))).toBe('accepted');
    expect(refusal(() => read(limits.parameters_max + 1))).toBe('too_many_parameters');
  });

  test('empty pairs in a form do not count as parameters', () => {
    expect(plain(parse(form, `${'&'.repeat(5_000)}a=1`))).toEqual({ a: '1' });
  });

  test('the number of values in one JSON text is limited', () => {
    const list = (count: number) => `{"a":[${'1,'.repeat(count - 1)}1]}`;
    const text = `{"a":"${',['.repeat(limits.json_text_values_max)}\\",,"}`;
    expect(refusal(() => parse(json, list(limits.json_text_values_max - 2)))).toBe('accepted');
    expect(refusal(() => parse(json, list(2 * limits.json_text_values_max)))).toBe('bad_json');
    expect(refusal(() => parse(json, text))).toBe('accepted');
  });

  test('commas and brackets inside JSON strings do not count as separators, even after escaped quotes and backslashes', () => {
    const most = limits.json_text_values_max;
    for (const inside of ['\\"', '\\\\', '\\\\\\"', '[', '\\",[']) {
      const text = `{"a":"${`${inside},`.repeat(2 * most)}","b":[1,2]}`;
      expect(
        refusal(() => parse(json, text)),
        inside,
      ).toBe('accepted');
    }
    expect(refusal(() => parse(json, `{"a":"\\\\",${'"b":[],'.repeat(most)}"c":1}`))).toBe('bad_json');
  });
});

test('a multipart body is refused if too many of its lines begin like the boundary', () => {
  const most = limits.multipart_near_boundaries_max;
  const body = (count: number) =>
    `--b\r\nContent-Disposition: form-data; name="f"\r\n\r\n${'\r\n--bx'.repeat(count)}\r\n--b--`;
  expect(refusal(() => parse('multipart/form-data; boundary=b', body(most)))).toBe('accepted');
  expect(refusal(() => parse('multipart/form-data; boundary=b', body(most + 1)))).toBe('bad_request');
});

test.each(['', 'text/plain', 'application/octet-stream'])(
  'a body of type %j is parsed as JSON or as a form, depending on its first character',
  (type) => {
    expect(plain(parse(type, ' \n{"a":1}'))).toEqual({ a: 1 });
    expect(plain(parse(type, 'a=1&b=2'))).toEqual({ a: '1', b: '2' });
    expect(refusal(() => parse(type, '{a'))).toBe('bad_json');
    expect(plain(parse(json, ''))).toEqual({});
  },
);

describe('multipart bodies', () => {
  const type = 'multipart/form-data; boundary=b1';
  const part = (head: string, content: string) => `--b1\r\n${head}\r\n\r\n${content}\r\n`;
  const files = (params: ParsedParams) =>
    [...params.files].map(([name, file]) => [name, file.filename, file.contentType, file.bytes.toString()]);

  test('a multipart part may have lower-case headers without spaces and an unquoted file name', () => {
    const boundary = '----------k7v';
    const body = [
      `--${boundary}\r\ncontent-disposition:form-data;name="chat_id"\r\n\r\n42\r\n`,
      `--${boundary}\r\ncontent-disposition:form-data;name="photo"\r\n\r\nattach://f1\r\n`,
      `--${boundary}\r\ncontent-disposition:form-data;name="f1";filename=файл мой; 2.png\r\n`,
      `content-type:application/octet-stream\r\n\r\n\r\n--${boundary}x\r\n\r\n--${boundary}--\r\n`,
    ].join('');
    const params = parse(`multipart/form-data; boundary=${boundary}`, body, 'chat_id=1&caption=c');
    expect(plain(params)).toEqual({ chat_id: '42', photo: 'attach://f1', caption: 'c' });
    expect(files(params)).toEqual([
      ['f1', 'файл мой; 2.png', 'application/octet-stream', `\r\n--${boundary}x\r\n`],
    ]);
  });

  test('a multipart body may have a preamble, an extra field, a file without a type, and no final line break', () => {
    const body = `hi\r\n${part('Content-Disposition: form-data; name="method"', 'sendPhoto')}${part(
      'Content-Disposition: form-data; name="photo"; filename="C:\\\\fake\\\\a;b\\".jpg"',
      'BYTES',
    )}--b1--`;
    const params = parse('Multipart/Form-Data; charset=x; boundary="b1"', body);
    expect(plain(params)).toEqual({ method: 'sendPhoto' });
    expect(files(params)).toEqual([['photo', 'a;b".jpg', 'text/plain', 'BYTES']]);
  });

  test('a body encoded by FormData is accepted', async () => {
    const data = new FormData();
    data.append('text', 'é "q"\r\nz');
    data.append('__proto__', 'p');
    data.append('doc', new Blob([new Uint8Array([0, 255, 13, 10])], { type: 'image/png' }), 'ф "1".png');
    data.append('text', 'last');
    const sent = new Response(data);
    const body = Buffer.from(await sent.arrayBuffer());
    const { values, files: found } = parse(sent.headers.get('content-type')!, body);
    expect(values.text).toBe('last');
    expect(Object.entries(values)).toContainEqual(['__proto__', 'p']);
    expect(found.get('doc')).toEqual({
      filename: 'ф %221%22.png',
      contentType: 'image/png',
      bytes: Buffer.from([0, 255, 13, 10]),
    });
  });

  test('a file in a multipart body may have no file name, or a percent-encoded file name in `filename*`', () => {
    const body = `${part(`Content-Disposition: form-data; name="a"; filename*=utf-8''%D1%84.png`, '1')}${part(
      'Content-Disposition: form-data; name="b"\r\nContent-Type: application/octet-stream',
      '2',
    )}${part('Content-Disposition: form-data; name=c\r\nContent-Type: text/plain; charset=utf-8', '')}--b1--`;
    const params = parse(type, body);
    expect(files(params)).toEqual([
      ['a', 'ф.png', 'text/plain', '1'],
      ['b', '', 'application/octet-stream', '2'],
    ]);
    expect(plain(params)).toEqual({ c: '' });
  });

  const named = 'Content-Disposition: form-data; name="a"';
  test.each([
    ['no boundary', 'multipart/form-data', `${part(named, '1')}--b1--`],
    ['no delimiter', type, 'hello'],
    ['a body that ends inside the content of a part', type, `--b1\r\n${named}\r\n\r\nabc`],
    ['a body that ends inside the head of a part', type, '--b1\r\nContent-Disp'],
    ['a body without the last delimiter', type, part(named, '1')],
    ['no head', type, '--b1\r\n\r\nabc\r\n--b1--'],
    ['no name', type, `${part('Content-Disposition: form-data', '1')}--b1--`],
    ['no disposition', type, `${part('Content-Type: text/plain', '1')}--b1--`],
    ['bare line feeds as line breaks', type, `--b1\n${named}\n\n1\n--b1--`],
    ['a part whose head does not end', type, `${part(`X: ${'y'.repeat(20_000)}\r\n${named}`, '1')}--b1--`],
  ])('a multipart body is refused: %s', (_, contentType, body) => {
    expect(refusal(() => parse(contentType, body))).toBe('bad_request');
  });

  test('a multipart field or part header that is not UTF-8 is refused', () => {
    const field = Buffer.from(`${part(named, '\xff')}--b1--`, 'latin1');
    const head = Buffer.from(`${part(`${named}; filename="\xff"`, '1')}--b1--`, 'latin1');
    expect(refusal(() => parse(type, field))).toBe('bad_unicode');
    expect(refusal(() => parse(type, head))).toBe('bad_unicode');
    expect(refusal(() => parse(type, `${part(named, 'a\0')}--b1--`))).toBe('bad_unicode');
  });

  test('the number of parts and the bytes of text in a multipart body are limited', () => {
    const parts = (count: number) => `${part(named, '1').repeat(count)}--b1--`;
    expect(refusal(() => parse(type, parts(limits.multipart_parts_max)))).toBe('accepted');
    expect(refusal(() => parse(type, parts(limits.multipart_parts_max + 1)))).toBe('too_large');
    const long = 'x'.repeat(limits.body_bytes_max + 1);
    expect(refusal(() => parse(type, `${part(named, long)}--b1--`))).toBe('too_large');
    const half = part(named, 'x'.repeat(limits.body_bytes_max / 2 + 1));
    expect(refusal(() => parse(type, `${half}--b1--`))).toBe('accepted');
    expect(refusal(() => parse(type, `${half}${half}--b1--`))).toBe('too_large');
    const upload = parse(type, `${part(`${named}; filename=f`, long)}--b1--`);
    expect(upload.files.get('a')?.bytes.length).toBe(long.length);
  });

  test('the content of a file in a multipart body is returned unchanged', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 60 }),
        fc.constantFrom('', '\r\n--b1', '\r\n--b', '--b1--'),
        (bytes, tail) => {
          const content = Buffer.concat([bytes, Buffer.from(tail), Buffer.from('z')]);
          const body = Buffer.concat([
            Buffer.from(`--b1\r\n${named}; filename=f\r\n\r\n`),
            content,
            Buffer.from('\r\n--b1--\r\n'),
          ]);
          expect(parse(type, body).files.get('a')?.bytes.equals(content)).toBe(true);
        },
      ),
    );
  });
});
