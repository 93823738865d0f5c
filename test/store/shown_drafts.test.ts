import { expect, test } from 'vitest';
import { DraftPace, type MessageDraft } from '../../src/store/chats/shown_drafts.js';
import { directChat } from '../../src/store/core/keys.js';
import { storeLimits as limits } from '../../src/store/limits.js';
import { VirtualTime } from '../support/virtual_time.js';

const chat = directChat(100_001, 5);
const other = directChat(100_002, 5);
const draft = (text: string) => (): MessageDraft => ({
  ...{ draft_id: 1, after_message_id: 1, can_stop: false, stopped: false, text },
});

/**
 * Creates a `DraftPace` with a client that reads slowly. Each function in `taking` lets the client finish reading one
 * draft.
 */
function paced() {
  const time = new VirtualTime();
  const shown: string[] = [];
  const taking: Array<() => void> = [];
  const pace = new DraftPace(time, (_, { text }) => {
    shown.push(text);
    return new Promise((resolve) => taking.push(resolve));
  });
  return { time, shown, taking, pace };
}

test('a client that reads slowly skips drafts, and gets the newest draft after it has read the previous one', async () => {
  const { time, shown, taking, pace } = paced();
  pace.take(chat, draft('a'));
  for (const text of ['b', 'c', 'd']) {
    pace.take(chat, draft(text));
    await time.advance(limits.draft_show_interval_ms);
  }
  expect(shown).toEqual(['a']);
  pace.take(other, draft('other'));
  expect(shown).toEqual(['a', 'other']);
  taking[0]?.();
  await time.advance(0);
  expect(shown).toEqual(['a', 'other', 'd']);
});

test('a client that reads quickly gets one draft per interval', async () => {
  const { time, shown, taking, pace } = paced();
  pace.take(chat, draft('a'));
  taking[0]?.();
  pace.take(chat, draft('b'));
  await time.advance(limits.draft_show_interval_ms - 1);
  expect(shown).toEqual(['a']);
  await time.advance(1);
  expect(shown).toEqual(['a', 'b']);
});

test('a stream that has ended does not send its pending draft', async () => {
  const { time, shown, taking, pace } = paced();
  pace.take(chat, draft('a'));
  pace.take(chat, draft('b'));
  await time.advance(limits.draft_show_interval_ms);
  pace.end();
  taking[0]?.();
  await time.advance(limits.draft_show_interval_ms);
  expect(shown).toEqual(['a']);
});
