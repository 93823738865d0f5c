/** Describes webhook deliveries and groups of operations for the OpenAPI document. */
import type { Json } from './openapi_schemas.js';

const header = (name: string, required: boolean, description: string): Json => ({
  name,
  in: 'header',
  required,
  description,
  schema: { type: 'string' },
});

const webhookTag = 'Webhooks';

export const webhooks: Json = {
  update: {
    post: {
      operationId: 'update',
      tags: [webhookTag],
      summary: 'update',
      description:
        'The service posts each update to the URL of `setWebhook`. An update may be delivered more than once. The header `webhook-id` is the same for every attempt. A setting can replace the word `Service` in the names of headers.',
      security: [],
      parameters: [
        header('webhook-id', true, 'Id of the bot and id of the update'),
        header('webhook-timestamp', true, 'Time of this attempt, Unix time in seconds'),
        header(
          'webhook-signature',
          true,
          '`v1,` and base64 of the HMAC-SHA-256 of id, timestamp and body, joined by dots. For 24 hours after a rotation of the signing secret, two such values, separated by a space. If the installation has signing keys, then also `v1a,` and base64 of the Ed25519 signature of the same text. `/.well-known/jwks.json` has the public keys',
        ),
        header(
          'X-Service-Signature',
          true,
          'Hex of the HMAC-SHA-256 of the body. The key is the secret token or, if none is set, the signing secret',
        ),
        header(
          'traceparent',
          false,
          'W3C Trace Context, if the installation records the trace of the update. A call with this header joins the trace',
        ),
        header(
          'X-Service-Ping',
          false,
          '`1` for a test request that the owner of the bot sends. Its `update_id` is 0, and it has the field `ping` with the id of the bot and the Unix time',
        ),
        header('X-Telegram-Bot-Api-Secret-Token', false, 'The `secret_token` of `setWebhook`'),
        header('X-Service-Bot-Api-Secret-Token', false, 'The `secret_token` of `setWebhook`'),
      ],
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Update' } } },
      },
      responses: {
        '2XX': {
          description:
            'The update was delivered. If the body of the answer is a JSON object with a `method`, or a list of such objects, each method is called as the bot.',
        },
        410: { description: 'If the receiver answers 410 for 23 hours, the webhook is removed.' },
        default: {
          description:
            'The delivery is retried for up to 24 hours. Each retry waits at least as long as `Retry-After` asks. A `Retry-After` of more than an hour counts as an hour.',
        },
      },
    },
  },
};

/** Returns the groups of operations, in the order of the menu. */
export const tags = (groups: readonly string[]): Json[] => [
  { name: 'Bot methods', description: 'Calls that bots make: `/bot<token>/<method>`.' },
  { name: webhookTag, description: 'Calls that the service makes to the webhook of a bot.' },
  ...[...new Set(groups)].sort().map((name) => ({ name })),
];
