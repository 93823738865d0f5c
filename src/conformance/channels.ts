/** Checks of the posts in a channel where the bot may post, edit and delete. */
import { type Check, expectLike, expectTrue, type Session, show } from './check.js';

const check = (proves: string, run: Check['run']): Check => ({
  subject: 'channels',
  proves,
  needs: ['channel'],
  run,
});

async function posts(s: Session): Promise<void> {
  const chat_id = s.channel;
  const made = await s.result('createPost', { chat_id, text: 'A <b>post</b>', parse_mode: 'HTML' });
  const like = { text: 'A post', entities: [{ type: 'bold' }], reactions: [], liked_by_me: false };
  expectLike(made, { ...like, chat: { id: chat_id }, author: { id: s.me.id } }, 'createPost');
  expectLike(await s.result('getPost', { post_id: made.id }), made, 'getPost');
  expectLike(await s.result('getPost', { external_id: made.external_id }), made, 'getPost by external_id');
  const edited = await s.result('editPost', { post_id: made.id, text: 'Another post' });
  expectLike(edited, { id: made.id, text: 'Another post', edit_date: Number.isInteger }, 'editPost');
  await s.refused('editPost', { post_id: made.id, text: 'Another post' }, 'message_not_modified');
  await s.result('deleteMessage', { chat_id, message_id: made.message_id });
  await s.refused('getPost', { post_id: made.id }, 'post_not_found');
}

async function messages(s: Session): Promise<void> {
  const chat_id = s.channel;
  const sent = await s.result('sendMessage', { chat_id, text: 'A message' });
  expectLike(sent, { text: 'A message', chat: { id: chat_id, type: 'channel' } }, 'sendMessage');
  const { message_id } = sent;
  const forwarded = await s.result('forwardMessage', { chat_id, from_chat_id: chat_id, message_id });
  const origin = { type: 'channel', chat: { id: chat_id }, message_id };
  expectLike(forwarded, { forward_origin: origin }, 'forwardMessage');
  const poll = { chat_id, question: '?', options: ['a'], is_anonymous: false };
  await s.refused('sendPoll', poll, 'poll_public_in_channel');
  const { type } = await s.result('getChat', { chat_id });
  expectTrue(type === 'channel', `getChat shows the type ${show(type)}`);
}

export const channelChecks: readonly Check[] = [
  check('posts are created, edited and deleted', posts),
  check('messages in channels are posts', messages),
];
