/** Defines the results of sign-up, sign-in and sessions. */
import { z } from 'zod';
import { self } from './account_results.js';
import { pageOf, unixSeconds } from './results.js';

export const signInWays = z
  .strictObject({
    sign_up: z.boolean().describe('Whether anyone can create an account'),
    provider: z
      .strictObject({ name: z.string().describe('Name of the provider that people see') })
      .optional()
      .describe('Present if people can sign in through an OpenID Connect provider'),
  })
  .meta({ id: 'SignInWays', description: 'The ways in which people without a token can sign in.' });

export const startedSignIn = z
  .strictObject({ url: z.string().describe('Address of the provider, which the browser opens') })
  .meta({ id: 'StartedSignIn', description: 'A started sign-in.' });

export const newSession = z
  .strictObject({ user: self, token: z.string().describe('Token of the session, shown only once') })
  .meta({ id: 'NewSession', description: 'A person and the token of their new session.' });

export const sessionPage = pageOf(
  z
    .strictObject({
      id: z.int().positive(),
      agent: z.string().describe('Browser and system, like `Firefox on Linux`; empty if unknown'),
      created_at: unixSeconds,
      last_used_on: z.string().optional().describe('YYYY-MM-DD by UTC'),
      is_current: z.literal(true).optional().describe('Present for the session of the caller'),
    })
    .meta({ id: 'Session', description: 'A browser in which the caller is signed in.' }),
);

export const endedSessions = z
  .strictObject({ ended: z.int().min(0) })
  .meta({ id: 'EndedSessions', description: 'How many sessions were ended.' });
