/** Defines the requests and results of the secret-scanning partner protocol. */
import { z } from 'zod';
import { ruleLimits } from '../rules/limits.js';
import { wireLimits as limits } from './limits.js';

export const leakedTokens = z
  .array(
    z.object({
      token: z.string().max(limits.leak_token_length_max),
      type: z.string().max(limits.leak_token_length_max),
      url: z.string().max(limits.leak_url_length_max).nullish(),
      source: z.string().max(limits.leak_token_length_max).nullish(),
    }),
  )
  .max(ruleLimits.leak_reports_max)
  .meta({
    id: 'LeakedTokens',
    description: 'Tokens that were found in public, each with the place where it was found.',
  });

export const leakLabels = z
  .array(
    z.strictObject({
      token_hash: z.string().describe('SHA-256 of the token, hex'),
      token_type: z.string(),
      label: z.enum(['true_positive', 'false_positive']),
    }),
  )
  .meta({
    id: 'LeakLabels',
    description: 'The reported tokens that belong or belonged to this installation.',
  });
