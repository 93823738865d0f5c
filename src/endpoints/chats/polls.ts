/** Shows polls to people and records their votes (decision 0048). */
import { z } from 'zod';
import { chatOfUser } from '../../actions/compose.js';
import { assertVotingAllowed, castVote, seenPoll } from '../../actions/polls.js';
import { pollFields, viewPoll } from '../../content/poll.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { appChatId, appMessageId } from '../../wire/fields.js';
import { integer, json } from '../../wire/schema.js';

const path = '/api/chats/{chat_id}/messages/{message_id}/poll';
const place = z.object({ chat_id: appChatId, message_id: appMessageId });
const seeing = ['chat_not_found', 'not_chat_member', 'message_not_found', 'message_not_poll'] as const;

export const getPoll = defineEndpoint({
  verb: 'GET',
  path,
  summary: 'Returns the poll in a message with its current results.',
  params: place,
  errors: [...seeing, 'poll_not_found'],
  result: pollFields,
  handler: async ({ user, store }, p) => {
    const poll = await seenPoll(store, user, chatOfUser(user.id, p.chat_id), p.message_id);
    const state = await store.votes.state(poll, { id: user.id, isBot: false });
    return viewPoll({ ...poll, state }, true, undefined, store.time.nowSeconds());
  },
});

const ids = { error: 'an array of integers' };

export const vote = defineEndpoint({
  verb: 'POST',
  path,
  inRedis: true,
  summary: 'Votes in a poll. An empty list retracts the vote.',
  params: place.extend({
    option_ids: json(z.array(integer(), ids).max(limits.poll_options_max, ids)).describe(
      'Indexes of the chosen options',
    ),
  }),
  errors: [
    ...seeing,
    'bot_blocked_by_you',
    'cant_write_to_person',
    'poll_not_found',
    'poll_closed',
    'vote_final',
    'vote_options_wrong',
  ],
  result: pollFields,
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    const poll = await seenPoll(store, user, chat, p.message_id);
    await assertVotingAllowed(store, chat);
    return viewPoll(
      await castVote(store, user, poll, p.option_ids),
      true,
      undefined,
      store.time.nowSeconds(),
    );
  },
});
