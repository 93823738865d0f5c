/** Defines the actions that bots and people can show in a chat, such as typing. */
import { z } from 'zod';
import { answer } from './schema.js';

/** Maps each action to the kind of message that it announces. */
export const announcedKinds = {
  typing: 'text',
  upload_photo: 'photo',
  record_video: 'video',
  upload_video: 'video',
  record_voice: 'voice',
  upload_voice: 'voice',
  upload_document: 'document',
  choose_sticker: 'sticker',
  find_location: 'location',
  record_video_note: 'video_note',
  upload_video_note: 'video_note',
} as const;

/** Maps the action names of older Bot API versions to the current names. Libraries still send the old names. */
const formerActions: Readonly<Record<string, string>> = {
  record_audio: 'record_voice',
  upload_audio: 'upload_voice',
};

const actions = Object.keys(announcedKinds) as ReadonlyArray<keyof typeof announcedKinds>;

export const chatAction = z.preprocess(
  (given) => (typeof given === 'string' ? (formerActions[given] ?? given) : given),
  z.enum(actions, { error: answer('chat_action_invalid') }),
);
