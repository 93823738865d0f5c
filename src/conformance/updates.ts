/** Checks of updates: polls, webhooks and answers to queries. The checks set a webhook whose URL has no receiver. */
import { ApiError, type ErrorDetail, type ErrorName } from '../errors.js';
import { type Check, expectLike, expectRefusal, expectTrue, type Session, show } from './check.js';

const check = (proves: string, run: Check['run'], needs: Check['needs'] = []): Check => ({
  subject: 'updates',
  proves,
  needs,
  run,
});

/** Closes a poll. This creates an update for the bot without any action by a person. */
async function closePoll(s: Session): Promise<string> {
  const { message_id, poll } = await s.result('sendPoll', { chat_id: s.chat, question: '?', options: ['a'] });
  await s.result('stopPoll', { chat_id: s.chat, message_id });
  return poll.id;
}

interface Update {
  readonly update_id: number;
  readonly poll?: { readonly id: string; readonly is_closed: boolean };
}

const polls_max = 20;

/** Repeats `getUpdates` without confirming updates until the bot gets the update about the closed poll. */
async function awaitPoll(s: Session, id: string, offset: number): Promise<Update> {
  for (let i = 0; i < polls_max; i++) {
    const all: readonly Update[] = await s.result('getUpdates', { offset, timeout: 1 });
    const found = all.find(({ poll }) => poll?.id === id && poll.is_closed);
    if (found) return found;
  }
  throw new Error(`no update about the closed poll ${id} arrived in ${polls_max} polls`);
}

async function confirms(s: Session): Promise<void> {
  const first = await awaitPoll(s, await closePoll(s), 0);
  const again = await awaitPoll(s, first.poll?.id ?? '', first.update_id);
  expectTrue(again.update_id === first.update_id, `an update arrived again with the id ${again.update_id}`);
  const offset = first.update_id + 1;
  const second = await awaitPoll(s, await closePoll(s), offset);
  expectTrue(second.update_id > first.update_id, 'a later update has no higher update_id');
  const rest: readonly Update[] = await s.result('getUpdates', { offset: 0 });
  const old = rest.filter(({ update_id }) => update_id < offset);
  expectTrue(old.length === 0, `confirmed updates arrived again: ${show(old)}`);
  const limited = await s.result('getUpdates', { offset, limit: 1 });
  expectTrue(limited.length === 1, `getUpdates with limit 1 returned ${limited.length} updates`);
}

async function confirmsLater(s: Session): Promise<void> {
  const { update_id } = await awaitPoll(s, await closePoll(s), 0);
  expectLike(await s.result('confirmUpdates', { offset: update_id + 1 }), true, 'confirmUpdates');
  const rest: readonly Update[] = await s.result('getUpdates', { offset: 0 });
  const old = rest.filter((each) => each.update_id <= update_id);
  expectTrue(old.length === 0, `confirmed updates arrived again: ${show(old)}`);
  await s.result('confirmUpdates', { offset: update_id });
}

async function filters(s: Session): Promise<void> {
  const info = await s.result('getWebhookInfo');
  try {
    await s.result('getUpdates', { allowed_updates: ['callback_query'] });
    expectLike(await s.result('getWebhookInfo'), { allowed_updates: ['callback_query'] }, 'getWebhookInfo');
  } finally {
    await s.result('getUpdates', { allowed_updates: info.allowed_updates ?? [] });
  }
}

async function ends(s: Session): Promise<void> {
  const [, [last]] = await Promise.all([
    s.call('getUpdates', { offset: -1, timeout: 1 }),
    s.result('getUpdates', { offset: -1 }),
  ]);
  const offset = (last?.update_id ?? 0) + 1;
  const earlier = s.call('getUpdates', { offset, timeout: 20 });
  let answered = false;
  const noteAnswer = () => {
    answered = true;
  };
  void earlier.then(noteAnswer, noteAnswer);
  // Makes more `getUpdates` calls until the earlier one is answered, because the server may receive a later call first.
  for (let i = 0; i < polls_max && !answered; i++) await s.result('getUpdates', { offset, timeout: 1 });
  expectRefusal(await earlier, new ApiError('poll_terminated_by_poll'), 'the earlier getUpdates');
}

async function setsWebhook(s: Session): Promise<void> {
  const { allowed_updates = [] } = await s.result('getWebhookInfo');
  const settings = { max_connections: 7, secret_token: 'Known-to_2' };
  try {
    await s.result('setWebhook', { url: s.webhook, ...settings, allowed_updates: ['poll_answer'] });
    const info = { url: s.webhook, max_connections: 7, allowed_updates: ['poll_answer'] };
    expectLike(await s.result('getWebhookInfo'), info, 'getWebhookInfo');
    for (const method of ['getUpdates', 'streamUpdates']) await s.refused(method, {}, 'poll_while_webhook');
    await s.refused('confirmUpdates', { offset: 1 }, 'poll_while_webhook');
  } finally {
    await s.result('deleteWebhook');
    await s.result('getUpdates', { allowed_updates });
  }
  expectLike(await s.result('getWebhookInfo'), { url: '' }, 'getWebhookInfo');
}

async function setsRoute(s: Session): Promise<void> {
  const route = { name: 'conformance', url: s.webhook, percent: 5, allowed_updates: ['poll_answer'] };
  try {
    await s.result('setWebhookRoute', { ...route, max_connections: 7 });
    expectLike(await s.result('getWebhookRoutes'), [{ ...route, max_connections: 7 }], 'getWebhookRoutes');
    expectLike(await s.result('getWebhookInfo'), { url: '' }, 'getWebhookInfo with a route');
    await s.refused('setWebhookRoute', { ...route, percent: 101 }, 'route_percent_invalid');
    await s.refused('setWebhookRoute', { ...route, name: 'a b' }, 'route_name_invalid');
  } finally {
    await s.result('deleteWebhookRoute', { name: route.name });
  }
  expectLike(await s.result('getWebhookRoutes'), [], 'getWebhookRoutes');
}

async function refusesWebhooks(s: Session): Promise<void> {
  const refused = (params: object, kind: ErrorName, detail?: ErrorDetail) =>
    s.refused('setWebhook', { url: 'https://example.org/hook', ...params }, kind, detail);
  try {
    await refused({ url: 'http://example.org/' }, 'webhook_url_not_https');
    await refused({ url: 'https://[::1]/' }, 'webhook_address_reserved', { what: '::1' });
    await refused({ url: 'https://example.org:6379/' }, 'webhook_port_refused', { what: '6379' });
    await refused({ max_connections: 0 }, 'webhook_connections_wrong');
    await refused({ max_connections: 101 }, 'webhook_connections_wrong');
    await refused({ secret_token: 'a b' }, 'webhook_secret_invalid');
    await refused({ secret_token: 'x'.repeat(257) }, 'webhook_secret_too_long');
    await refused({ certificate: 'no certificate' }, 'certificate_invalid');
    expectLike(await s.result('getWebhookInfo'), { url: '' }, 'getWebhookInfo after refusals');
  } finally {
    // Deletes the webhook in case the server wrongly accepted an invalid setting. The server would otherwise send the
    // bot's updates to example.org.
    await s.result('deleteWebhook');
  }
}

const article = {
  type: 'article',
  id: '1',
  title: 'One',
  input_message_content: { message_text: 'one' },
};

export const updateChecks: readonly Check[] = [
  check('getUpdates returns updates until they are confirmed', confirms, ['chat', 'polling']),
  check('confirmUpdates confirms updates', confirmsLater, ['chat', 'polling']),
  check('allowed_updates is stored', filters, ['polling']),
  check('a newer getUpdates ends the earlier one', ends, ['polling']),
  check('a webhook is set and deleted', setsWebhook, ['polling', 'webhook']),
  check('a webhook route is set and deleted', setsRoute, ['polling', 'webhook']),
  check(
    'deleteWebhook without a webhook changes nothing',
    async (s) => {
      await s.result('deleteWebhook');
      expectLike(await s.result('getWebhookInfo'), { url: '', pending_update_count: Number.isInteger }, 'it');
    },
    ['polling'],
  ),
  check('setWebhook refuses invalid settings', refusesWebhooks, ['polling']),
  check('answerCallbackQuery refuses an unknown query', async (s) => {
    await s.refused('answerCallbackQuery', { callback_query_id: '1' }, 'query_too_old');
    const long = { callback_query_id: '1', text: 'x'.repeat(201) };
    await s.refused('answerCallbackQuery', long, 'callback_answer_too_long');
  }),
  check('answerInlineQuery refuses an unknown query', async (s) => {
    await s.refused('answerInlineQuery', { inline_query_id: '1', results: [article] }, 'query_too_old');
    const many = Array.from({ length: 51 }, (_, i) => ({ ...article, id: `${i}` }));
    await s.refused('answerInlineQuery', { inline_query_id: '1', results: many }, 'too_many_inline_results');
  }),
];
