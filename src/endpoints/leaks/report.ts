/** Accepts reports of tokens that were found in public places (behaviour §13, the secret-scanning partner protocol). */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { fail } from '../../errors.js';
import { definePartnerEndpoint, leakReportPath, replied } from '../../server/endpoint.js';
import { leakedTokens, leakLabels } from '../../wire/leak_results.js';

/** Parses the signed body of a report. Throws `bad_json` or `bad_request`. */
function tokensIn(body: Buffer): z.output<typeof leakedTokens> {
  let given: unknown;
  try {
    given = JSON.parse(body.toString('utf8'));
  } catch {
    return fail('bad_json');
  }
  const { success, data } = leakedTokens.safeParse(given);
  return success ? data : fail('bad_request');
}

export const reportLeaks = definePartnerEndpoint({
  verb: 'POST',
  path: leakReportPath,
  summary: 'Blocks leaked tokens. The blocked tokens stop working before this call returns.',
  params: z.object({}),
  given: leakedTokens,
  errors: ['not_found'],
  body: leakLabels,
  handler: async ({ store, request, leakKeys }) => {
    if (leakKeys === null) return fail('not_found');
    if (!(await leakKeys.verify(request.body, request.keyId, request.signature))) fail('unauthorized');
    const tokens = tokensIn(request.body);
    const found = tokens.map(({ token, url }) => ({ token, place: url ?? '' }));
    const known = await store.leaks.report(found, 'report');
    // Identifies each token by its hash, so that the answer reveals no token.
    const labels = tokens.map(({ token, type }, i) => ({
      token_hash: createHash('sha256').update(token).digest('hex'),
      token_type: type,
      label: known[i] ? 'true_positive' : 'false_positive',
    }));
    request.reply(200, JSON.stringify(labels));
    return replied;
  },
});
