/** Signs people in through an OpenID Connect provider (decision 0082). */
import { Readable } from 'node:stream';
import { z } from 'zod';
import { viewAvatar } from '../../actions/pictures.js';
import { fail } from '../../errors.js';
import { cookieValue } from '../../rules/cookies.js';
import { agentFamily } from '../../rules/user_agents.js';
import { defineOpenEndpoint, replied, type SignIn } from '../../server/endpoint.js';
import type { ApiRequest } from '../../server/request.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewCaller } from '../../view/users.js';
import { text } from '../../wire/schema.js';
import { newSession, signInWays, startedSignIn } from '../../wire/sign_in_results.js';

/**
 * How long the browser keeps the cookie of a started sign-in, in seconds. The server's record expires after the same
 * time.
 */
const record_s_max = 600;

/** Browsers accept a cookie with the prefix `__Host-` only from this host over HTTPS. */
const cookieName = ({ isSecure }: SignIn) => (isSecure ? '__Host-petrel-sign-in' : 'petrel-sign-in');

/** Sends a result with the cookie of the started sign-in. An empty `record` removes the cookie. */
function replyWithCookie(
  request: ApiRequest,
  signIn: SignIn,
  record: string,
  result: unknown,
): typeof replied {
  const age = record === '' ? 0 : record_s_max;
  const secure = signIn.isSecure ? '; Secure' : '';
  const cookie = `${cookieName(signIn)}=${record}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Lax${secure}`;
  const body = Buffer.from(JSON.stringify({ ok: true, result }));
  request.replyStream({
    status: 200,
    headers: [
      ['Content-Type', 'application/json'],
      ['Cache-Control', 'no-store'],
      ['Set-Cookie', cookie],
    ],
    length: body.length,
    body: Readable.from([body], { objectMode: false }),
  });
  return replied;
}

export const getSignInWays = defineOpenEndpoint({
  verb: 'GET',
  path: '/api/sign_in',
  summary: 'Returns the ways in which people without a token can sign in to the web application.',
  params: z.object({}),
  result: signInWays,
  handler: ({ signIn: { isOpen, provider } }) => ({
    sign_up: isOpen,
    ...(provider === null ? {} : { provider: { name: provider.name } }),
  }),
});

export const beginSignIn = defineOpenEndpoint({
  verb: 'POST',
  path: '/api/sign_in/provider',
  summary:
    'Starts a sign-in through the OpenID Connect provider. The answer sets a cookie, which the browser needs to finish the sign-in within ten minutes.',
  params: z.object({}),
  errors: ['no_identity_provider', 'identity_provider_unavailable'],
  result: startedSignIn,
  handler: async ({ store, request, address, signIn }) => {
    const provider = signIn.provider ?? fail('no_identity_provider');
    await store.fairUse?.signIn(address);
    const { url, record } = await provider.begin();
    return replyWithCookie(request, signIn, record, { url });
  },
});

export const finishSignIn = defineOpenEndpoint({
  verb: 'POST',
  path: '/api/sign_in/session',
  summary:
    'Finishes a sign-in through the OpenID Connect provider, and creates a session. The browser must send the cookie that it got when the sign-in started.',
  params: z.object({
    answer: text.describe(
      'The query with which the provider sent the browser back, without the question mark',
    ),
  }),
  errors: [
    ...(['no_identity_provider', 'identity_provider_unavailable', 'sign_in_expired'] as const),
    ...(['sign_in_refused', 'account_missing', 'account_suspended'] as const),
  ],
  result: newSession,
  handler: async ({ store, files, request, address, signIn }, { answer }) => {
    const provider = signIn.provider ?? fail('no_identity_provider');
    await store.fairUse?.signIn(address);
    const record = cookieValue(request.cookie, cookieName(signIn));
    const count = async () => store.fairUse?.signUp(address);
    const id = await provider.finish(record, answer, count);
    const user = (await store.users.find(id)) ?? fail('account_missing');
    if (user.state !== undefined) return fail('account_suspended');
    const token = await store.sessions.start(id, agentFamily(request.userAgent));
    const caller = { ...viewCaller(userProfile(user), user), ...viewAvatar(files, user) };
    return replyWithCookie(request, signIn, '', { user: caller, token });
  },
});
