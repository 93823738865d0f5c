/** Tests how a window of the web application shares the unsent text of a chat with other windows. */
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

interface ChatDraft {
  readonly chat_id: number;
  readonly text: string;
  readonly version: number;
}
// The application needs the browser type definitions, and tests are compiled without these definitions.
const client = '../../src/web/client';
const {
  draftIn,
  draftOf,
  noteDraft,
}: {
  draftIn(chat: number): { readonly isFromElsewhere: boolean };
  draftOf(chat: number): string;
  noteDraft(chat: number, text: string): void;
} = await import(`${client}/model/drafts.ts`);
const { loadDrafts, takeDraft }: { loadDrafts(): Promise<void>; takeDraft(draft: ChatDraft): void } =
  await import(`${client}/model/shared_drafts.ts`);
const isFromElsewhere = (chat: number) => draftIn(chat).isFromElsewhere;

/** A service with the draft of one chat. It applies a call and answers it in separate steps. */
class FakeService {
  text = '';
  version = 0;
  /** The texts in the calls that the window made. */
  readonly sent: string[] = [];
  /** The events that the window has not received yet. */
  readonly events: ChatDraft[] = [];
  isOnline = true;
  /** Whether a call was made before the previous call was answered. */
  isOverlapping = false;
  readonly #chat: number;
  #call: { text: string; answer: (answer: Response | Error) => void; version?: number } | undefined;

  constructor(chat: number) {
    this.#chat = chat;
  }

  fetch(path: string, { body }: { body?: string } = {}): Promise<Response> {
    if (!this.isOnline) return Promise.reject(new TypeError('offline'));
    const item = { chat_id: this.#chat, text: this.text, version: this.version };
    if (path.startsWith('/api/me/drafts?'))
      return Promise.resolve(Response.json({ ok: true, result: { items: this.version > 0 ? [item] : [] } }));
    expect(path).toBe(`/api/me/drafts/${this.#chat}`);
    this.isOverlapping ||= this.#call !== undefined;
    const { text } = JSON.parse(body as string);
    this.sent.push(text);
    return new Promise((resolve, reject) => {
      const answer = (given: Response | Error) => (given instanceof Error ? reject(given) : resolve(given));
      this.#call = { text, answer };
    });
  }

  set(text: string): void {
    if (text === this.text) return;
    this.text = text;
    this.version++;
    this.events.push({ chat_id: this.#chat, text, version: this.version });
  }

  apply(): void {
    if (!this.#call || this.#call.version !== undefined) return;
    this.set(this.#call.text);
    this.#call.version = this.version;
  }

  /** Answers the call in flight, or breaks its connection after the call was applied. */
  async answer(isLost = false): Promise<void> {
    this.apply();
    const { answer, version } = this.#call ?? {};
    this.#call = undefined;
    answer?.(isLost ? new TypeError('lost') : Response.json({ ok: true, result: { version } }));
    await settle();
  }

  /** Refuses the call in flight. */
  async refuse(): Promise<void> {
    const { answer } = this.#call ?? {};
    this.#call = undefined;
    answer?.(Response.json({ ok: false, error_code: 403, description: 'Forbidden' }, { status: 403 }));
    await settle();
  }

  deliver(): void {
    const event = this.events.shift();
    if (event) takeDraft(event);
  }
}

/** Advances the timers by `ms`, and lets pending promises settle. */
async function settle(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  for (let n = 0; n < 20; n++) await Promise.resolve();
}

let next = 1;
let chat: number;
let service: FakeService;

function begin(): void {
  chat = next++;
  service = new FakeService(chat);
}
beforeEach(async () => {
  vi.useFakeTimers();
  vi.stubGlobal('fetch', (path: string, init: { body?: string }) => service.fetch(path, init));
  begin();
  const loaded = loadDrafts();
  await settle();
  await loaded;
});
afterEach(() => {
  expect(service.isOverlapping).toBe(false);
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('a draft is sent at most every 300 ms while the person types, and the last text is always sent', async () => {
  for (const text of ['H', 'He', 'Hel', 'Hell']) {
    noteDraft(chat, text);
    await settle(100);
    await service.answer();
  }
  expect(service.sent).toEqual(['Hel']);
  await settle(300);
  await service.answer();
  expect(service.sent).toEqual(['Hel', 'Hell']);
  await settle(10_000);
  expect(service.sent).toHaveLength(2);
});

test('the removal of a draft is sent immediately, but never before the answer to the previous call', async () => {
  noteDraft(chat, 'Hello');
  await settle(300);
  noteDraft(chat, '');
  await settle(300);
  expect(service.sent).toEqual(['Hello']);
  await service.answer();
  await settle();
  noteDraft(chat, 'N');
  await service.answer();
  await settle(300);
  await service.answer();
  expect([service.sent, service.text]).toEqual([['Hello', '', 'N'], 'N']);
  noteDraft(chat, '');
  await settle();
  expect(service.sent.at(-1)).toBe('');
});

test('a draft from another window replaces the draft in this window, unless this window has a newer change', async () => {
  noteDraft(chat, 'Mine');
  await settle(300);
  await service.answer();
  service.set('Theirs');
  // The first event reports the call of this window, so the draft does not change.
  service.deliver();
  expect([draftOf(chat), isFromElsewhere(chat)]).toEqual(['Mine', false]);
  service.deliver();
  expect([draftOf(chat), isFromElsewhere(chat)]).toEqual(['Theirs', true]);
  noteDraft(chat, 'Theirs, and mine');
  service.set('Other');
  service.deliver();
  expect([draftOf(chat), isFromElsewhere(chat)]).toEqual(['Theirs, and mine', false]);
  await settle(300);
  await service.answer();
  expect(service.text).toBe('Theirs, and mine');
});

test('the last call of any window wins, even if its event arrives before the answer to an earlier call', async () => {
  noteDraft(chat, 'Mine');
  await settle(300);
  service.apply();
  service.set('Theirs');
  while (service.events.length > 0) service.deliver();
  expect(draftOf(chat)).toBe('Mine');
  await service.answer();
  expect(draftOf(chat)).toBe('Theirs');
  await settle(60_000);
  expect([service.text, service.sent]).toEqual(['Theirs', ['Mine']]);
});

test.each([
  ['while its call is in flight', false],
  ['after the answer to its call was lost', true],
])('the text of a sent message does not come back %s', async (_, isLost) => {
  noteDraft(chat, 'Sent');
  await settle(300);
  noteDraft(chat, '');
  service.apply();
  if (isLost) await service.answer(true);
  service.deliver();
  expect(draftOf(chat)).toBe('');
  await service.answer();
  await settle(60_000);
  await service.answer();
  expect([draftOf(chat), service.text]).toEqual(['', '']);
});

test('a draft that was typed without a connection is sent when the stream is open again', async () => {
  service.isOnline = false;
  noteDraft(chat, 'Offline');
  await settle(60_000);
  service.set('Elsewhere');
  service.isOnline = true;
  const loaded = loadDrafts();
  await settle();
  await loaded;
  await settle();
  await service.answer();
  expect([draftOf(chat), service.text]).toEqual(['Offline', 'Offline']);
});

test('a draft removal that was made without a connection does not remove a later draft of another window', async () => {
  noteDraft(chat, 'Sent');
  await settle(300);
  await service.answer();
  service.isOnline = false;
  noteDraft(chat, '');
  await settle(1_000);
  service.set('Later');
  service.isOnline = true;
  const loaded = loadDrafts();
  await settle();
  await loaded;
  await settle(60_000);
  expect([draftOf(chat), service.text, service.sent]).toEqual(['Later', 'Later', ['Sent']]);
});

test('a draft that is too long for the service stays in this window', async () => {
  noteDraft(chat, 'x'.repeat(4_097));
  await settle(60_000);
  expect(service.sent).toEqual([]);
  noteDraft(chat, 'x'.repeat(4_096));
  await settle(300);
  expect(service.sent).toHaveLength(1);
});

const step = fc.oneof(
  fc.record({ kind: fc.constant('type' as const), text: fc.constantFrom('', 'a', 'ab', 'abc') }),
  fc.record({ kind: fc.constant('other' as const), text: fc.constantFrom('', 'a', 'x', 'xy') }),
  fc.record({ kind: fc.constantFrom('wait', 'apply', 'answer', 'lose', 'deliver', 'load') }),
);

test('windows agree after any order of changes, calls and events, and no text is replaced while it is unsent', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      begin();
      /** The typed text that the service has not confirmed, if any. */
      let typed: string | null = null;
      for (const { kind, ...rest } of steps) {
        const { text = '' } = rest as { text?: string };
        if (kind === 'type' && text !== draftOf(chat)) {
          noteDraft(chat, text);
          typed = text;
        } else if (kind === 'other') service.set(text);
        else if (kind === 'wait') await settle(300);
        else if (kind === 'apply') service.apply();
        else if (kind === 'answer') {
          const isSent = service.sent.at(-1) === typed;
          await service.answer();
          if (isSent) typed = null;
        } else if (kind === 'lose') await service.answer(true);
        else if (kind === 'load') void loadDrafts();
        else if (kind === 'deliver') service.deliver();
        await settle();
        // If the person has removed the text, the draft of another window may replace it.
        if (typed) expect(draftOf(chat)).toBe(typed);
      }
      for (let n = 0; n < 4; n++) {
        await service.answer();
        while (service.events.length > 0) service.deliver();
        await settle(6_000);
      }
      expect([draftOf(chat), service.isOverlapping]).toEqual([service.text, false]);
    }),
    { numRuns: 300 },
  );
});

test('the text of a sent message does not return as a draft if the answer to the draft call and the later removal are lost', async () => {
  noteDraft(chat, 'Sent');
  await settle(300);
  noteDraft(chat, '');
  await service.answer(true);
  service.isOnline = false;
  await settle(6_000);
  service.isOnline = true;
  const loaded = loadDrafts();
  await settle();
  await loaded;
  await settle(1_000);
  await service.answer();
  await settle(1_000);
  expect([draftOf(chat), service.text, service.sent]).toEqual(['', '', ['Sent', '']]);
});

test('a window does not send the text of another window while the removal of its own draft is in flight', async () => {
  noteDraft(chat, 'Sent');
  await settle(300);
  await service.answer();
  service.deliver();
  noteDraft(chat, '');
  await settle();
  service.set('Later');
  service.deliver();
  service.apply();
  await service.answer();
  while (service.events.length > 0) service.deliver();
  await settle(5_000);
  expect([draftOf(chat), service.text, service.sent]).toEqual(['', '', ['Sent', '']]);
});

test('a refused draft stays in its window, and is sent again after a change', async () => {
  noteDraft(chat, 'Mine');
  await settle(300);
  await service.refuse();
  await settle(60_000);
  service.set('Other');
  service.deliver();
  expect([draftOf(chat), service.sent]).toEqual(['Mine', ['Mine']]);
  noteDraft(chat, 'Mine too');
  await settle(300);
  await service.answer();
  expect([draftOf(chat), service.text, service.sent]).toEqual(['Mine too', 'Mine too', ['Mine', 'Mine too']]);
});
