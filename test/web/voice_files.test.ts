/** Tests how recordings are sent among other files. */
import { expect, test } from 'vitest';
import { formOf, groupsOf, kindOf } from '../../src/web/client/model/attachments.js';

const recording = new File(['x'], 'Voice message', { type: 'audio/webm;codecs=opus' });
const song = new File(['x'], 'song.webm', { type: 'audio/webm' });

test('only a recording of the page is a voice message', () => {
  expect([recording, song].map(kindOf)).toEqual(['voice', 'audio']);
  expect(kindOf(new File(['x'], 'v', { type: 'audio/ogg; codecs=opus' }))).toBe('voice');
});

test('each voice message is a message of its own', () => {
  expect(groupsOf([recording, recording, song, song])).toEqual([[recording], [recording], [song, song]]);
});

test('the call that sends a recording states its length', () => {
  const form = formOf([recording], '', undefined, 7, 3);
  expect([...form.keys()].sort()).toEqual(['duration', 'reply_to_message_id', 'voice']);
  expect(form.get('duration')).toBe('3');
});
