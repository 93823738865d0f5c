/** The rows of interface §§2-4 and 6-8 that the table has not: what each waits for is not built. */

export interface LeftOut {
  readonly row: string;
  /** A bot method by its name, or an endpoint as `POST /api/…`. */
  readonly waitsFor: string;
}

const setWebhook = [
  '§2 Webhook info: url, has_custom_certificate, last_error_date, last_error_message of a webhook that is set',
  '§3 Update delivery mode: polling, setWebhook with a valid HTTPS URL → webhook, the server pushes updates',
  '§3 Update delivery mode: webhook, deleteWebhook → polling, getUpdates can be used again',
  '§4.3 POST setWebhook, with form-encoded parameters',
  '§4.3 GET deleteWebhook of a webhook that is set',
  '§4.4 POST to the webhook URL: Content-Type, X-Service-Bot-Api-Secret-Token, X-Service-Signature, an Update',
  '§6 setWebhook: url, certificate, max_connections, allowed_updates, drop_pending_updates, secret_token',
  '§6 Delivery rules 1 to 5',
  '§7 a non-HTTPS webhook URL',
  '§8 max_connections: 0, 1, 100 and 101',
  '§8 Webhook response time: 60 seconds',
  '§8 Webhook request size: 10 MB',
  '§8 Webhook URL scheme: HTTPS only',
  '§8 Webhook address: the local loopback address does not work',
];

export const leftOut: readonly LeftOut[] = [
  ...setWebhook.map((row) => ({ row, waitsFor: 'setWebhook' })),
  {
    row: '§3 Bot ownership: owned by A, transfer to another user, confirmed by owner → owned by the recipient',
    waitsFor: 'POST /api/me/bots/{bot_id}/transfer',
  },
  {
    row: '§2 Other identity items: start picture, 640x360, shown before Start is pressed; §8 its size',
    waitsFor: 'PUT /api/me/bots/{bot_id}/start_picture',
  },
  {
    row: '§2 Other identity items: avatar, set in the application, cropped to a circle',
    waitsFor: 'PUT /api/me/bots/{bot_id}/avatar',
  },
];
