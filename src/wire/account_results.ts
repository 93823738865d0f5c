/** Defines the results about the caller's own account. */
import { z } from 'zod';
import { issuedToken, pageOf, pictureFields, unixSeconds, user } from './results.js';

export const addPolicies = ['everyone', 'shared_chats', 'nobody'] as const;

export const self = user
  .extend({
    add_to_groups: z
      .enum(addPolicies)
      .describe('Who may add the caller to groups and channels. Everybody else can only invite the caller'),
    start_chats: z.enum(addPolicies).describe('Who may start a chat with the caller'),
    avatar: pictureFields.avatar,
  })
  .meta({ id: 'Self', description: 'The caller.' });

export const namedToken = issuedToken
  .extend({ id: z.int().positive(), name: z.string() })
  .meta({ id: 'NamedToken', description: 'A token of a person.' });

export const userTokenPage = pageOf(
  z
    .strictObject({
      id: z.int().positive(),
      name: z.string().describe('Empty for a token that the operator issued'),
      created_at: unixSeconds,
      last_used_on: z.string().optional().describe('YYYY-MM-DD by UTC'),
    })
    .meta({ id: 'UserToken', description: 'A token of a person, without its secret.' }),
);

export const chatDraft = z
  .strictObject({
    chat_id: z.int().describe('Id of the chat'),
    text: z.string().describe('Empty after the caller sent or removed the draft'),
    version: z
      .int()
      .positive()
      .describe(
        'Greater than the versions of all earlier drafts in this chat. Ignore drafts with a lower version',
      ),
  })
  .meta({ id: 'ChatDraft', description: 'The caller’s unsent text in a chat.' });

export const chatDraftPage = pageOf(chatDraft);

export const draftVersion = z
  .strictObject({
    version: z.int().min(0).describe('Version of the draft; 0 if there never was a draft in this chat'),
  })
  .meta({ id: 'DraftVersion', description: 'The new version of the caller’s draft in a chat.' });

export const pushState = z
  .strictObject({
    public_key: z.string().optional().describe('base64url; absent when notifications are off'),
    subscriptions: z.int().min(0),
  })
  .meta({ id: 'PushState', description: 'Notification settings of the caller.' });

export const storedUploads = z
  .strictObject({
    bytes: z.int().min(0),
    bytes_max: z.int().positive().optional().describe('Absent if there is no limit'),
  })
  .meta({
    id: 'StoredUploads',
    description: 'The size of the files that a person and the person’s bots have stored, in bytes.',
  });
