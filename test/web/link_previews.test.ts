/** Tests which previews the web application shows for a link. */
import { afterAll, beforeEach, expect, test, vi } from 'vitest';

interface Message {
  readonly chat: { readonly id: number };
  readonly message_id: number;
  readonly text: string;
  readonly entities: ReadonlyArray<{
    readonly type: string;
    readonly offset: number;
    readonly length: number;
  }>;
}
interface Preview {
  readonly url: string;
  readonly title: string;
}
// The application needs the browser type definitions, and tests are compiled without these definitions.
const client = '../../src/web/client';
const {
  linkOf,
  askPreview,
  knownPreview,
}: {
  linkOf(message: Message): string | undefined;
  knownPreview(url: string, message: Message): Preview | null | undefined;
  askPreview(url: string, message: Message, done: (preview: Preview) => void): () => void;
} = await import(`${client}/model/link_previews.ts`);

/** The answers of the service, keyed by the id of the message. */
const answers = new Map<number, { preview?: Preview }>();

beforeEach(() => {
  answers.clear();
  vi.stubGlobal('location', { origin: 'https://petrel.example' });
  vi.stubGlobal('fetch', async (path: string) => {
    const id = Number(/messages\/(\d+)/.exec(path)?.[1]);
    return Response.json({ ok: true, result: answers.get(id) ?? {} });
  });
});
afterAll(() => {
  vi.unstubAllGlobals();
});

let next = 1;
function messageOf(...links: string[]): Message {
  const text = links.join(' ');
  const entities = links.map((link) => ({ type: 'url', offset: text.indexOf(link), length: link.length }));
  return { chat: { id: 1 }, message_id: next++, text, entities };
}

/** Returns the titles that the card of the message shows. */
async function titlesOf(message: Message): Promise<string[]> {
  const titles: string[] = [];
  const link = linkOf(message) as string;
  askPreview(link, message, ({ title }) => titles.push(title));
  await expect.poll(() => knownPreview(link, message)).toBeDefined();
  await new Promise((resolve) => setTimeout(resolve));
  return titles;
}

const bank = 'https://bank.example/';

test('a link shows the preview of its own page', async () => {
  for (const link of [`${bank}#part`, 'http://bank.example', 'BANK.example']) {
    const message = messageOf(link);
    answers.set(message.message_id, { preview: { url: bank, title: 'Bank' } });
    expect(await titlesOf(message)).toEqual(['Bank']);
  }
});

test.each([
  ['http://evil.example:81/', bank],
  ['https://evil.example/', 'https://petrel.example/'],
])('the link to %s does not show the preview of %s', async (link, page) => {
  const message = messageOf(link);
  answers.set(message.message_id, { preview: { url: page, title: 'Bank' } });
  expect(await titlesOf(message)).toEqual([]);
});

test('a message cannot change the preview that other messages show on the same link', async () => {
  const hostile = messageOf('evil.example:443/x', bank);
  answers.set(hostile.message_id, {
    preview: { url: 'https://evil.example/x', title: 'The bank has moved' },
  });
  expect(linkOf(hostile)).toBe(bank);
  expect(await titlesOf(hostile)).toEqual([]);
  const honest = messageOf(bank);
  answers.set(honest.message_id, { preview: { url: bank, title: 'Bank' } });
  expect(await titlesOf(honest)).toEqual(['Bank']);
});
